/**
 * Warmpath: sends a request where it does the least harm, in milliseconds. docs/policy.md has the reasons and the evidence.
 *
 *   harm = urgency × (time to first token + prompts put off + prompts to come)
 *        + own decode + delay of others + eviction − shared batch − worth of a copy
 *
 * - time to first token: slot wait + memory wait + what is left of the step under way + what is left of the prompts ahead + own
 *   uncached prompt, all with the batch decoding along;
 * - prompts put off: those it is computed with get their first tokens later by as much as it takes;
 * - prompts to come: what is computed once more though somebody holds it makes those later who come meanwhile;
 * - own decode: expected answer × step time with this request in the batch;
 * - delay of others: its prompt stops everyone who decodes there, and every step of its answer makes theirs longer;
 * - eviction: what it stores pushes out as much sooner or later, which somebody would have reused as often as prompts
 *   are cached at all;
 * - shared batch: prompts that are computed together stop those who decode once.
 *
 * Urgency is high while prompts do not queue: then a first token is all there is to win, and nobody pays for it. It falls
 * as a queue lasts, because then harm to others is what makes everybody's first token late.
 *
 * A copy of a prefix is worth something where its holders are busy: what its lack costs the requests of that prefix, for as
 * long as a copy may take to pay for itself. So a hot prefix gets one more holder before a queue would force it.
 *
 * Times come from a `SpeedModel` that learns from streamed tokens and starts from a prior that fits any accelerator to within a
 * factor the first signals settle.
 */
import { NS_PER_MS, NS_PER_SECOND } from "../clock.ts";
import { ArrivalRate } from "./arrival-rate.ts";
import { CopyLedger } from "./copy-ledger.ts";
import {
  type Beliefs,
  costMs,
  createHarm,
  decodeStepNs,
  firstTokenNs,
  type Harm,
  harmTerms,
  judge,
  pendingPromptsNs,
} from "./harm.ts";
import { lowestCost, NO_CANDIDATE } from "./lowest-cost.ts";
import { numberParameter, resolveParameters } from "./parameters.ts";
import { type ForeseenPrompt, PromptBook } from "./prompt-book.ts";
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
/** Prompt tokens that an engine computes in one step, where it does not say. */
const USUAL_STEP_TOKENS = 8192;

/** What is known beside the view, as numbers: the terms of the speed model, four more of the fleet, and four of each candidate. */
const HIT_SHARE = SPEED_TERMS.length;
const COPY_WORTH = HIT_SHARE + 1;
const PRESSURE = COPY_WORTH + 1;
const ARRIVALS = PRESSURE + 1;
const PER_CANDIDATE = ARRIVALS + 1;
/** Its factor, what is left of the prompts ahead, how many it would be computed with, and blocks it surely holds. */
const CANDIDATE_NUMBERS = 4;

type Writable<T> = { -readonly [name in keyof T]: T[name] };

/** What a look over all candidates finds. */
interface Survey {
  /** Prompts that wait at a replica or are computed there, on average. */
  waiting: number;
  /** Leading blocks of the prompt that some candidate holds or is about to. */
  deepest: number;
}

/** What a decision changes once it is carried out. */
interface Claim {
  /** Of the queue, and prompts that wait at a replica from then on. */
  pressure: number;
  waits: number;
  /** For the book of prompts. */
  readonly foreseen: Writable<ForeseenPrompt>;
  /** For the ledger of copies. */
  copy: "none" | "charge" | "settle";
  key: number;
  lackMs: number;
}

class Warmpath implements Policy {
  readonly name = "warmpath";
  readonly usesActivePrefix = false;
  readonly parameters: PolicyParameters;
  readonly #speeds: SpeedModel;
  readonly #copies: CopyLedger = new CopyLedger();
  readonly #pressure: QueuePressure;
  readonly #arrivals: ArrivalRate = new ArrivalRate();
  readonly #prompts: PromptBook = new PromptBook();
  readonly #calmUrgency: number;
  readonly #busyUrgency: number;
  readonly #queueHalf: number;
  readonly #expectedCredit: number;
  readonly #paybackNs: number;
  readonly #harm: Harm = createHarm();
  readonly #survey: Survey = { waiting: 0, deepest: 0 };
  readonly #beliefs: Writable<Beliefs> = {
    coefficientsNs: [],
    factor: 1,
    aheadNs: 0,
    together: 0,
    heldBlocks: 0,
    mostSettled: 0,
    arrivals: 0,
    hitShare: 0,
  };
  readonly #claim: Claim = {
    pressure: 0,
    waits: 0,
    foreseen: { isBehindOthers: false, untilStepNs: 0, doneInNs: 0, pendingNs: 0 },
    copy: "none",
    key: 0,
    lackMs: 0,
  };
  #known: Float64Array = new Float64Array(0);
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
    const claim = this.#claim;
    claim.copy = "none";
    if (view.count === 0) return NO_CANDIDATE;
    const known = this.learned(view);
    this.#weigh(view, known);
    claim.pressure = known[PRESSURE];
    claim.waits = this.#survey.waiting + 1 / view.count;
    let choice = lowestCost(view, this.#costs, "rotation");
    if (choice.kind !== "place") return choice;
    choice = this.#considerCopy(view, choice, known);
    this.#foresee(view, choice.replica, known);
    return choice;
  }

  learned(view: CandidateView): ArrayLike<number> {
    this.#look(view);
    const { count, candidates, load, nowNs } = view;
    const { waiting, deepest } = this.#survey;
    const { coefficientsNs } = this.#speeds;
    const size = PER_CANDIDATE + count * CANDIDATE_NUMBERS;
    if (this.#known.length !== size) this.#known = new Float64Array(size);
    const known = this.#known;
    known.set(coefficientsNs);
    known[HIT_SHARE] = this.#hitShare;
    known[COPY_WORTH] = deepest > 0 ? this.#copies.rate(view.prefixKey(deepest), nowNs) * this.#paybackNs : 0;
    known[PRESSURE] = this.#pressure.at(nowNs, waiting);
    known[ARRIVALS] = this.#arrivals.at(nowNs);
    for (let at = 0, first = PER_CANDIDATE; at < count; at++, first += CANDIDATE_NUMBERS) {
      const replica = candidates[at];
      const factor = this.#speeds.factor(replica);
      const waits = load.inFlight[replica] - load.decoding[replica];
      const pendingNs = factor * pendingPromptsNs(load, replica, coefficientsNs);
      known[first] = factor;
      known[first + 1] = 0;
      known[first + 2] = 0;
      known[first + 3] = view.settledBlocks(replica);
      if (waits <= 0) continue;
      // One step is under way at a time: of what is beyond it nothing is done yet.
      const stepTokens = load.stepTokens[replica] || USUAL_STEP_TOKENS;
      const pendingTokens = load.pendingPrefillTokens[replica];
      const beyondNs = pendingTokens > stepTokens ? pendingNs * (1 - stepTokens / pendingTokens) : 0;
      known[first + 1] = Math.max(beyondNs, this.#prompts.leftNs(replica, nowNs, pendingNs));
      known[first + 2] = Math.min(waits, this.#prompts.together(replica, nowNs));
    }
    return known;
  }

  explain(view: CandidateView, learned: ArrayLike<number> = this.learned(view)): Explanation {
    const urgency = this.#weigh(view, learned);
    const cheapest = lowestCost(view, this.#costs, "rotation") as Placement;
    const place = this.#placeOfCopy(view, cheapest);
    const candidates = Array.from(view.candidates.subarray(0, view.count), (replica, at) => {
      const spared = at === place ? this.#sparedMs(at, learned[COPY_WORTH]) : 0;
      this.#believe(at, learned);
      this.#beliefs.heldBlocks = this.#held(view, at, learned);
      judge(this.#harm, view, replica, this.#beliefs);
      const terms = [...harmTerms(this.#harm, urgency), { name: "worth of a copy", value: -spared }];
      return { replica, cost: this.#costs[at] - spared, terms };
    });
    const first = `${urgency.toFixed(1)} × (time to first token + prompts put off + prompts to come)`;
    const rule = `${first} + own decode + delay of others + eviction − shared batch − worth of a copy`;
    return { rule, unit: "ms", candidates };
  }

  observe(signal: PolicySignal): void {
    switch (signal.kind) {
      case "placed":
        return this.#book(signal.nowNs, signal.replica);
      case "replica-reset":
        this.#prompts.forget(signal.replica);
        return this.#speeds.forget(signal.replica);
      case "grew": {
        const { replica, tokens: steps, sinceLastNs: tookNs, meanwhile: prefill, load } = signal;
        const { decoding: sequences, contextTokens } = load;
        return this.#speeds.learn({ replica, steps, sequences, contextTokens, prefill, tookNs, noise: TOKENS_NOISE });
      }
      case "first-token": {
        const { replica, promptTokens, prefillTokens, meanwhile: prefill, sincePlacedNs: tookNs, load } = signal;
        this.#hitShare += HIT_GAIN * (1 - prefillTokens / Math.max(1, promptTokens) - this.#hitShare);
        if (signal.tokens > 1) return;
        this.#prompts.firstToken(replica, signal.nowNs, tookNs);
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

  /** One look over the candidates for what is asked of them together. */
  #look({ count, candidates, load, cachedBlocks }: CandidateView): void {
    const survey = this.#survey;
    let waiting = 0;
    survey.deepest = 0;
    for (let at = 0; at < count; at++) {
      const replica = candidates[at];
      waiting += load.inFlight[replica] - load.decoding[replica];
      survey.deepest = Math.max(survey.deepest, cachedBlocks[replica]);
    }
    survey.waiting = waiting / Math.max(1, count);
  }

  /** Fills the costs of all candidates and returns how urgent the request is. */
  #weigh(view: CandidateView, known: ArrayLike<number>): number {
    const { count, candidates } = view;
    if (count > this.#costs.length) this.#makeRoom(count);
    const harm = this.#harm;
    const beliefs = this.#beliefs;
    beliefs.coefficientsNs = known;
    beliefs.hitShare = known[HIT_SHARE];
    let mostHeld = 0;
    beliefs.mostSettled = 0;
    for (let at = 0; at < count; at++) {
      beliefs.mostSettled = Math.max(beliefs.mostSettled, settledBlocks(at, known));
      mostHeld = Math.max(mostHeld, this.#held(view, at, known));
    }
    beliefs.arrivals = known[ARRIVALS] / count;
    const urgency = this.#urgency(known);
    for (let at = 0; at < count; at++) {
      const replica = candidates[at];
      const held = this.#held(view, at, known);
      this.#believe(at, known);
      beliefs.heldBlocks = held;
      judge(harm, view, replica, beliefs);
      const cost = costMs(harm, urgency);
      this.#costs[at] = cost;
      this.#wastes[at] = (urgency * harm.wasteNs) / NS_PER_MS;
      if (held < mostHeld) {
        beliefs.heldBlocks = mostHeld;
        judge(harm, view, replica, beliefs);
        this.#warmCosts[at] = costMs(harm, urgency);
      } else this.#warmCosts[at] = cost;
    }
    return urgency;
  }

  /** Takes what is known of one candidate for believed. */
  #believe(at: number, known: ArrayLike<number>): void {
    const beliefs = this.#beliefs;
    const first = PER_CANDIDATE + at * CANDIDATE_NUMBERS;
    beliefs.factor = known[first];
    beliefs.aheadNs = known[first + 1];
    beliefs.together = known[first + 2];
  }

  /** Makes a copy of the prefix if that has come to be worth its price, and notes what its lack costs if not. */
  #considerCopy(view: CandidateView, cheapest: Placement, known: ArrayLike<number>): Placement {
    const at = this.#placeOfCopy(view, cheapest);
    if (at < 0) return cheapest;
    const { deepest } = this.#survey;
    const paid = this.#costs[view.candidates.indexOf(cheapest.replica)];
    this.#costs[at] -= this.#sparedMs(at, known[COPY_WORTH]);
    const choice = lowestCost(view, this.#costs, "rotation") as Placement;
    const claim = this.#claim;
    claim.key = view.prefixKey(deepest);
    if (choice.replica === view.candidates[at]) claim.copy = "settle";
    else if (settledBlocks(view.candidates.indexOf(cheapest.replica), known) >= deepest) {
      // Only what is there already tells of lasting need: a burst waits for one and the same prompt to be computed.
      claim.copy = "charge";
      // While prompts queue everywhere, one more to compute would be paid for by all of them.
      claim.lackMs = this.#calm(known) ** 2 * (paid - this.#warmCosts[at]);
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

  /** What a copy takes off its price: a prefix that is worth a copy is not computed in vain. */
  #sparedMs(at: number, worthMs: number): number {
    return worthMs > 0 ? worthMs + this.#wastes[at] : 0;
  }

  /** Notes when the prompt should be done where it is to go. */
  #foresee(view: CandidateView, replica: number, known: ArrayLike<number>): void {
    const { load } = view;
    const { foreseen } = this.#claim;
    const beliefs = this.#beliefs;
    const at = view.candidates.indexOf(replica);
    this.#believe(at, known);
    beliefs.heldBlocks = this.#held(view, at, known);
    judge(this.#harm, view, replica, beliefs);
    foreseen.isBehindOthers = load.inFlight[replica] > load.decoding[replica];
    foreseen.untilStepNs = load.decoding[replica] > 0 ? (beliefs.factor * decodeStepNs(load, replica, known)) / 2 : 0;
    foreseen.doneInNs = firstTokenNs(this.#harm);
    foreseen.pendingNs = beliefs.factor * pendingPromptsNs(load, replica, known) + this.#harm.promptNs;
  }

  #book(nowNs: number, replica: number): void {
    const { pressure, waits, foreseen, copy, key, lackMs } = this.#claim;
    this.#pressure.decided(nowNs, pressure, waits);
    this.#arrivals.arrived(nowNs);
    this.#prompts.placed(replica, nowNs, foreseen);
    if (copy === "charge") this.#copies.charge(key, nowNs, lackMs);
    else if (copy === "settle") this.#copies.settle(key);
    this.#claim.copy = "none";
  }

  /** Blocks of the prompt that a candidate holds; one that is on its way through the engine counts for less. */
  #held(view: CandidateView, at: number, known: ArrayLike<number>): number {
    const settled = settledBlocks(at, known);
    return settled + this.#expectedCredit * (view.cachedBlocks[view.candidates[at]] - settled);
  }

  /** 1 where no prompt waits, half where as many do at a replica as `queueHalf` says, and towards 0 from there. */
  #calm(known: ArrayLike<number>): number {
    const queue = known[PRESSURE] / this.#queueHalf;
    return 1 / (1 + queue * queue);
  }

  /** How much first tokens count for. */
  #urgency(known: ArrayLike<number>): number {
    return this.#busyUrgency + (this.#calmUrgency - this.#busyUrgency) * this.#calm(known);
  }

  #makeRoom(count: number): void {
    this.#costs = new Float64Array(2 * count);
    this.#warmCosts = new Float64Array(2 * count);
    this.#wastes = new Float64Array(2 * count);
  }
}

function settledBlocks(at: number, known: ArrayLike<number>): number {
  return known[PER_CANDIDATE + at * CANDIDATE_NUMBERS + 3];
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
      about: "what a block counts for that a prompt under way is yet to compute",
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
