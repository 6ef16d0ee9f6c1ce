/**
 * Warmpath: sends a request where it does the least harm, in milliseconds. docs/policy.md has the reasons and the evidence.
 *
 *   harm = urgency × (time to first token + prompts to come)
 *        + own decode + delay of others + eviction − shared batch − worth of a copy
 *
 * - time to first token: slot wait + memory wait + what is left of the step under way + prompts ahead + own uncached prompt,
 *   all with the batch decoding along;
 * - prompts to come: what is computed once more though somebody holds it makes those later who come meanwhile;
 * - own decode: expected answer × step time with this request in the batch;
 * - delay of others: its prompt stops everyone who decodes there, and every step of its answer makes theirs longer;
 * - eviction: where the pool is full, what it stores pushes out as much, which somebody would have reused as often as prompts
 *   are cached at all.
 *
 * Urgency is high while prompts do not queue: then a first token is all there is to win, and nobody pays for it. It falls
 * as a queue lasts, because then harm to others is what makes everybody's first token late.
 *
 * Prompts that wait are computed together. Where they queue anyway, one more with them stops others less than one by itself.
 *
 * A copy of a prefix is worth something where its holders are busy: what its lack costs the requests of that prefix, for as
 * long as a copy may take to pay for itself. So a hot prefix gets one more holder before a queue would force it.
 *
 * Times come from a `SpeedModel` that learns from streamed tokens and starts from a prior that fits any accelerator to within a
 * factor the first signals settle.
 */
import { NS_PER_SECOND } from "../clock.ts";
import { ArrivalRate } from "./arrival-rate.ts";
import { CopyLedger } from "./copy-ledger.ts";
import { type Beliefs, createHarm, type Harm, harmTerms, judge, wasteMs } from "./harm.ts";
import { lowestCost, NO_CANDIDATE } from "./lowest-cost.ts";
import { numberParameter, resolveParameters } from "./parameters.ts";
import { QueuePressure } from "./queue-pressure.ts";
import { SPEED_TERMS, SpeedModel } from "./speed-model.ts";
import type {
  CandidateView,
  Choice,
  Explanation,
  Placement,
  Policy,
  PolicyDefinition,
  PolicyParameters,
  PolicySignal,
} from "./types.ts";

/** How much of a new signal goes into the learned share of cached prompt tokens. */
const HIT_GAIN = 0.01;
/** Noise of the two kinds of signals: a run of tokens is regular, a first token depends on where in a step it came. */
const TOKENS_NOISE = 0.2;
const FIRST_TOKEN_NOISE = 0.5;

/** A learned state as numbers: the terms, four of the fleet, and three of each candidate. */
const HIT_SHARE = SPEED_TERMS.length;
const COPY_WORTH = HIT_SHARE + 1;
const PRESSURE = COPY_WORTH + 1;
const ARRIVALS = PRESSURE + 1;
const PER_CANDIDATE = ARRIVALS + 1;
/** Its factor, the pairs of its pending prompts, and those held for it. */
const CANDIDATE_NUMBERS = 3;

/** What a decision changes once it is carried out. */
interface Claim {
  /** Of the queue, and prompts that wait at a replica from then on. */
  pressure: number;
  waits: number;
  /** For the ledger of copies. */
  kind: "none" | "charge" | "settle";
  key: number;
  costMs: number;
}

class Warmpath implements Policy {
  readonly name = "warmpath";
  readonly usesActivePrefix = false;
  readonly parameters: PolicyParameters;
  readonly #speeds: SpeedModel;
  readonly #copies: CopyLedger = new CopyLedger();
  readonly #pressure: QueuePressure;
  readonly #arrivals: ArrivalRate = new ArrivalRate();
  readonly #calmUrgency: number;
  readonly #busyUrgency: number;
  readonly #queueHalf: number;
  readonly #expectedCredit: number;
  readonly #paybackNs: number;
  readonly #harm: Harm = createHarm();
  readonly #beliefs: { -readonly [name in keyof Beliefs]: Beliefs[name] } = {
    coefficientsNs: [],
    factor: 1,
    pendingPairs: 0,
    heldFor: 0,
    heldBlocks: 0,
    mostConfirmed: 0,
    arrivals: 0,
    hitShare: 0,
    urgency: 0,
    sharing: 0,
  };
  readonly #claim: Claim = { pressure: 0, waits: 0, kind: "none", key: 0, costMs: 0 };
  /** By candidate: what it would cost as things are, and if it held as much of the prompt as the best holder does. */
  #costs: Float64Array = new Float64Array(64);
  #warmCosts: Float64Array = new Float64Array(64);
  /** And how much of the former is for what it would compute once more. */
  #wastes: Float64Array = new Float64Array(64);
  #hitShare = 0;

  constructor(parameters: PolicyParameters) {
    this.parameters = parameters;
    this.#calmUrgency = numberParameter(parameters, "calmUrgency");
    this.#busyUrgency = numberParameter(parameters, "busyUrgency");
    this.#queueHalf = numberParameter(parameters, "queueHalf");
    this.#expectedCredit = numberParameter(parameters, "expectedCredit");
    this.#paybackNs = numberParameter(parameters, "paybackSeconds") * NS_PER_SECOND;
    this.#pressure = new QueuePressure(numberParameter(parameters, "queueSeconds") * NS_PER_SECOND);
    this.#speeds = new SpeedModel(numberParameter(parameters, "speedPriorFactor"));
  }

  choose(view: CandidateView): Choice {
    this.#claim.kind = "none";
    if (view.count === 0) return NO_CANDIDATE;
    const waiting = waitingPrompts(view);
    const pressure = this.#pressure.at(view.nowNs, waiting);
    this.#claim.pressure = pressure;
    this.#claim.waits = waiting + 1 / view.count;
    const calm = this.#calm(pressure);
    this.#weigh(view, calm);
    let choice = lowestCost(view, this.#costs, "rotation");
    if (choice.kind !== "place") return choice;
    choice = this.#considerCopy(view, choice, calm);
    return view.mayHold && isFull(view, choice.replica) ? { kind: "hold", replica: choice.replica } : choice;
  }

  learned(view: CandidateView): readonly number[] {
    const { count, candidates, load } = view;
    const depth = deepest(view);
    const worthMs = depth > 0 ? this.#worthMs(view.prefixKey(depth), view.nowNs) : 0;
    const pressure = this.#pressure.at(view.nowNs, waitingPrompts(view));
    const numbers: number[] = [
      ...this.#speeds.coefficientsNs,
      this.#hitShare,
      worthMs,
      pressure,
      this.#arrivals.at(view.nowNs),
    ];
    for (let at = 0; at < count; at++) {
      const replica = candidates[at];
      numbers.push(this.#speeds.factor(replica), load.pendingPrefillPairs[replica], view.heldFor[replica]);
    }
    return numbers;
  }

  explain(view: CandidateView, learned: readonly number[] = this.learned(view)): Explanation {
    if (view.count > this.#costs.length) this.#makeRoom(view.count);
    const calm = this.#calm(learned[PRESSURE]);
    const beliefs = this.#beliefs;
    const most = this.#mostHeld(view);
    beliefs.coefficientsNs = learned;
    beliefs.hitShare = learned[HIT_SHARE];
    beliefs.mostConfirmed = mostConfirmed(view);
    beliefs.arrivals = learned[ARRIVALS] / view.count;
    beliefs.urgency = this.#urgency(calm);
    beliefs.sharing = sharing(calm);
    const candidates = Array.from(view.candidates.subarray(0, view.count), (replica, at) => {
      const first = PER_CANDIDATE + at * CANDIDATE_NUMBERS;
      const known = learned.slice(first, first + CANDIDATE_NUMBERS);
      [beliefs.factor = 1, beliefs.pendingPairs = 0, beliefs.heldFor = 0] = known;
      beliefs.heldBlocks = most;
      this.#warmCosts[at] = judge(this.#harm, view, replica, beliefs);
      beliefs.heldBlocks = this.#held(view, replica);
      this.#costs[at] = judge(this.#harm, view, replica, beliefs);
      this.#wastes[at] = wasteMs(this.#harm);
      return { replica, cost: this.#costs[at], terms: harmTerms(this.#harm) };
    });
    const cheapest = lowestCost(view, this.#costs, "rotation") as Placement;
    const place = this.#placeOfCopy(view, cheapest);
    const copied = candidates.map(({ replica, cost, terms }, at) => {
      const spared = at === place ? this.#sparedMs(at, learned[COPY_WORTH]) : 0;
      return { replica, cost: cost - spared, terms: [...terms, { name: "worth of a copy", value: -spared }] };
    });
    const urgency = beliefs.urgency.toFixed(1);
    const rule = `${urgency} × (time to first token + prompts to come) + own decode + delay of others + eviction − shared batch − worth of a copy`;
    return { rule, unit: "ms", candidates: copied };
  }

  observe(signal: PolicySignal): void {
    switch (signal.kind) {
      case "placed":
        return this.#book(signal.nowNs);
      case "replica-reset":
        return this.#speeds.forget(signal.replica);
      case "grew": {
        const { replica, tokens: steps, sinceLastNs: tookNs, meanwhile: prefill, load } = signal;
        const { decoding: sequences, contextTokens } = load;
        return this.#speeds.learn({ replica, steps, sequences, contextTokens, prefill, tookNs, noise: TOKENS_NOISE });
      }
      case "first-token": {
        const { replica, promptTokens, prefillTokens, meanwhile: prefill, sincePlacedNs: tookNs, load } = signal;
        this.#hitShare += HIT_GAIN * (1 - prefillTokens / Math.max(1, promptTokens) - this.#hitShare);
        // With prompts still pending, some of the time went into those, and nobody knows how much.
        if (load.inFlight > load.decoding) return;
        const sequences = load.decoding - 1;
        const contextTokens = load.contextTokens - promptTokens;
        // On a busy replica it came in the middle of a step, on average.
        const steps = sequences > 0 ? 1.5 : 1;
        this.#speeds.learn({ replica, steps, sequences, contextTokens, prefill, tookNs, noise: FIRST_TOKEN_NOISE });
        return;
      }
      default:
        return;
    }
  }

  /** Fills the costs of all candidates. */
  #weigh(view: CandidateView, calm: number): void {
    const { count, candidates } = view;
    if (count > this.#costs.length) this.#makeRoom(count);
    const { pendingPrefillPairs } = view.load;
    const beliefs = this.#beliefs;
    const most = this.#mostHeld(view);
    beliefs.coefficientsNs = this.#speeds.coefficientsNs;
    beliefs.hitShare = this.#hitShare;
    beliefs.mostConfirmed = mostConfirmed(view);
    beliefs.arrivals = this.#arrivals.at(view.nowNs) / count;
    beliefs.urgency = this.#urgency(calm);
    beliefs.sharing = sharing(calm);
    for (let at = 0; at < count; at++) {
      const replica = candidates[at];
      const held = this.#held(view, replica);
      beliefs.factor = this.#speeds.factor(replica);
      beliefs.pendingPairs = pendingPrefillPairs[replica];
      beliefs.heldFor = view.heldFor[replica];
      beliefs.heldBlocks = held;
      const cost = judge(this.#harm, view, replica, beliefs);
      this.#costs[at] = cost;
      this.#wastes[at] = wasteMs(this.#harm);
      if (held < most) {
        beliefs.heldBlocks = most;
        this.#warmCosts[at] = judge(this.#harm, view, replica, beliefs);
      } else this.#warmCosts[at] = cost;
    }
  }

  /** Makes a copy of the prefix if that has come to be worth its price, and notes what its lack costs if not. */
  #considerCopy(view: CandidateView, cheapest: Placement, calm: number): Placement {
    const at = this.#placeOfCopy(view, cheapest);
    if (at < 0) return cheapest;
    const depth = deepest(view);
    const key = view.prefixKey(depth);
    const paid = this.#costs[view.candidates.indexOf(cheapest.replica)];
    const replica = view.candidates[at];
    this.#costs[at] -= this.#sparedMs(at, this.#worthMs(key, view.nowNs));
    const choice = lowestCost(view, this.#costs, "rotation") as Placement;
    const claim = this.#claim;
    claim.key = key;
    if (choice.replica === replica) claim.kind = "settle";
    else if (view.confirmedBlocks[cheapest.replica] >= depth) {
      // Only what is there already tells of lasting need: a burst waits for one and the same prompt to be computed.
      claim.kind = "charge";
      // While prompts queue everywhere, one more to compute would be paid for by all of them.
      claim.costMs = calm * calm * (paid - this.#warmCosts[at]);
    }
    return choice;
  }

  /** Where a copy would have been the cheapest of all; -1 if nobody holds anything, or the cheapest is a holder. */
  #placeOfCopy(view: CandidateView, cheapest: Placement): number {
    const warmest = lowestCost(view, this.#warmCosts, "rotation") as Placement;
    if (warmest.replica === cheapest.replica) return -1;
    const at = view.candidates.indexOf(warmest.replica);
    const paid = this.#costs[view.candidates.indexOf(cheapest.replica)];
    return this.#warmCosts[at] < paid ? at : -1;
  }

  /** What a copy may cost: what its lack costs, for as long as it may take to pay for itself. */
  #worthMs(key: number, nowNs: number): number {
    return this.#copies.rate(key, nowNs) * this.#paybackNs;
  }

  /** What a copy takes off its price: a prefix that is worth a copy is not computed in vain. */
  #sparedMs(at: number, worthMs: number): number {
    return worthMs > 0 ? worthMs + this.#wastes[at] : 0;
  }

  #book(nowNs: number): void {
    const { pressure, waits, kind, key, costMs } = this.#claim;
    this.#pressure.decided(nowNs, pressure, waits);
    this.#arrivals.arrived(nowNs);
    if (kind === "charge") this.#copies.charge(key, nowNs, costMs);
    else if (kind === "settle") this.#copies.settle(key);
    this.#claim.kind = "none";
  }

  /** Blocks of the prompt that a replica holds; one that is only expected may still be on its way through the engine. */
  #held(view: CandidateView, replica: number): number {
    const confirmed = view.confirmedBlocks[replica];
    return confirmed + this.#expectedCredit * (view.cachedBlocks[replica] - confirmed);
  }

  #mostHeld(view: CandidateView): number {
    let most = 0;
    for (let at = 0; at < view.count; at++) most = Math.max(most, this.#held(view, view.candidates[at]));
    return most;
  }

  /** 1 where no prompt waits, half where as many do at a replica as `queueHalf` says, and towards 0 from there. */
  #calm(pressure: number): number {
    const queue = pressure / this.#queueHalf;
    return 1 / (1 + queue * queue);
  }

  /** How much a first token counts for. */
  #urgency(calm: number): number {
    return this.#busyUrgency + (this.#calmUrgency - this.#busyUrgency) * calm;
  }

  #makeRoom(count: number): void {
    this.#costs = new Float64Array(2 * count);
    this.#warmCosts = new Float64Array(2 * count);
    this.#wastes = new Float64Array(2 * count);
  }
}

/**
 * How surely prompts that wait are computed together. A lone one has mostly begun by the time the next comes; only where prompts
 * queue are they taken together, and then the queue itself says how surely.
 */
function sharing(calm: number): number {
  return (1 - calm) * (1 - calm);
}

function isFull({ load }: CandidateView, replica: number): boolean {
  const slots = load.batchSlots[replica];
  return slots > 0 && load.inFlight[replica] >= slots;
}

/** Prompts that wait at a replica or are computed there, on average. */
function waitingPrompts({ count, candidates, load }: CandidateView): number {
  let waiting = 0;
  for (let at = 0; at < count; at++) waiting += load.inFlight[candidates[at]] - load.decoding[candidates[at]];
  return waiting / Math.max(1, count);
}

/** Leading blocks of the prompt that some candidate holds or is about to. */
function deepest({ count, candidates, cachedBlocks }: CandidateView): number {
  let depth = 0;
  for (let at = 0; at < count; at++) depth = Math.max(depth, cachedBlocks[candidates[at]]);
  return depth;
}

/** Leading blocks of the prompt that some candidate holds for certain. */
function mostConfirmed({ count, candidates, confirmedBlocks }: CandidateView): number {
  let most = 0;
  for (let at = 0; at < count; at++) most = Math.max(most, confirmedBlocks[candidates[at]]);
  return most;
}

/** Ours: least predicted harm. */
export const warmpath: PolicyDefinition = {
  name: "warmpath",
  about:
    "Least predicted harm in milliseconds: own first token and decode, delay of others, eviction; copies hot prefixes; learns speeds.",
  parameters: {
    calmUrgency: {
      kind: "number",
      default: 50,
      minimum: 0,
      maximum: 1000,
      about: "what a millisecond of time to first token counts for while no prompts queue",
    },
    busyUrgency: {
      kind: "number",
      default: 4,
      minimum: 0,
      maximum: 1000,
      about: "what it counts for while many do",
    },
    queueHalf: {
      kind: "number",
      default: 1,
      minimum: 0.01,
      maximum: 1000,
      about: "prompts waiting at a replica at which urgency is half way between the two",
    },
    queueSeconds: {
      kind: "number",
      default: 2,
      minimum: 0.001,
      maximum: 3600,
      about: "time over which those are averaged: shorter bursts are no queue",
    },
    expectedCredit: {
      kind: "number",
      default: 0.7,
      minimum: 0,
      maximum: 1,
      about: "what an expected block counts for that no event has confirmed",
    },
    paybackSeconds: {
      kind: "number",
      default: 90,
      minimum: 0,
      maximum: 86_400,
      about: "a prefix gets one more copy if that pays for itself within this time; 0 makes none on purpose",
    },
    speedPriorFactor: {
      kind: "number",
      default: 1,
      minimum: 0.01,
      maximum: 100,
      about: "how much slower than usual engines are believed to be before any token was seen",
    },
  },
  create(parameters: PolicyParameters): Policy {
    return new Warmpath(resolveParameters(warmpath.name, warmpath.parameters, parameters));
  },
};
