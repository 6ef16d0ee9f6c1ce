/**
 * Warmpath: sends a request where it does the least harm, in milliseconds. docs/policy.md has the reasons and the evidence.
 *
 *   harm = urgency × (time to first token + prompts put off + prompts to come)
 *        + own decode + delay of others + eviction − shared batch + lateness − worth of a copy
 *
 * - time to first token: slot wait + memory wait + what is left of the step under way + what is left of the prompts ahead + own
 *   uncached prompt, all with the batch decoding along;
 * - prompts put off: those it is computed with get their first tokens later by as much as it takes;
 * - prompts to come: what is computed once more though somebody holds it makes those later who come meanwhile;
 * - own decode: expected answer × step time with this request in the batch;
 * - delay of others: its prompt stops everyone who decodes there, and every step of its answer makes theirs longer;
 * - eviction: what it stores pushes out as much sooner or later, which somebody would have reused as often as prompts
 *   are cached at all;
 * - shared batch: prompts that are computed together stop those who decode once;
 * - lateness: what is left of a first token after it has become late counts once more, as much as a calm fleet's.
 *
 * Urgency is high while prompts do not queue: then a first token is all there is to win, and nobody pays for it. It falls
 * as a queue lasts, because then harm to others is what makes everybody's first token late. And it is low for whoever can join a
 * prompt under way that nobody holds yet, as long as all of that batch have their first tokens before it is late (`LateMark`): so a
 * burst shares one prefill where that makes nobody's first token one of the late ones. Not all engines let it: whether whoever joins
 * is spared anything is seen by their first tokens (`SharedPrefill`).
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
  comers,
  costMs,
  createHarm,
  decodeStepNs,
  firstTokenNs,
  type Harm,
  harmTerms,
  judge,
  pendingPromptsNs,
} from "./harm.ts";
import {
  ARRIVALS,
  CANDIDATE_NUMBERS,
  COPY_WORTH,
  HIT_SHARE,
  LATE,
  PER_CANDIDATE,
  PRESSURE,
  settledBlocks,
  UNDER_WAY_CREDIT,
  WAIT_UNTIL,
  waitedNs,
} from "./known-numbers.ts";
import { LateMark } from "./late-mark.ts";
import { chargeLateness, latenessMs } from "./lateness.ts";
import { lowestCost, NO_CANDIDATE } from "./lowest-cost.ts";
import { Offers } from "./offers.ts";
import { numberParameter, resolveParameters } from "./parameters.ts";
import { type ForeseenPrompt, PromptBook } from "./prompt-book.ts";
import { QueuePressure } from "./queue-pressure.ts";
import { SharedPrefill } from "./shared-prefill.ts";
import { SpeedModel } from "./speed-model.ts";
import { letTakeTurns, placeOfLowest } from "./taking-turns.ts";
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
import { WARMPATH_PARAMETERS } from "./warmpath-parameters.ts";

/** How much of a new signal goes into the learned share of cached prompt tokens. */
const HIT_GAIN = 0.01;
/** Noise of the two kinds of signals: a run of tokens is regular, a first token depends on where in a step it came. */
const TOKENS_NOISE = 0.2;
const FIRST_TOKEN_NOISE = 0.5;
/** Prompt tokens that an engine computes in one step, where it does not say. */
const USUAL_STEP_TOKENS = 8192;

/**
 * Where hardly anything is shared, load is all there is to go by, and what is foreseen of it is no better than to within half a step: as
 * close as that, candidates take turns, which keeps them more even than any forecast.
 */
const TURN_STEPS = 0.5;
const TURNS_BELOW_HIT_SHARE = 0.2;

type Writable<T> = { -readonly [name in keyof T]: T[name] };

/** What a look over all candidates finds. */
interface Survey {
  /** Prompts that wait at a replica or are computed there, on average, without those that are merely on their way into a step. */
  waiting: number;
  /** Leading blocks of the prompt that some candidate holds or is about to. */
  deepest: number;
}

/** What a decision changes once it is carried out. */
interface Claim {
  /** Of the queue, and prompts that wait at a replica from then on. */
  pressure: number;
  waits: number;
  /** For the mark of what is late. */
  soonestNs: number;
  /** For the book of prompts. */
  readonly foreseen: Writable<ForeseenPrompt>;
  /** For what joining a prompt under way is seen to spare, where it does: its first token with that, and without. */
  isSharing: boolean;
  promptTokens: number;
  sharedInNs: number;
  apartInNs: number;
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
  readonly #late: LateMark = new LateMark();
  readonly #shared: SharedPrefill = new SharedPrefill();
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
    soonestNs: 0,
    foreseen: { isBehindOthers: false, untilStepNs: 0, doneInNs: 0, pendingNs: 0 },
    isSharing: false,
    promptTokens: 0,
    sharedInNs: 0,
    apartInNs: 0,
    copy: "none",
    key: 0,
    lackMs: 0,
  };
  #known: Float64Array = new Float64Array(0);
  readonly #offers: Offers = new Offers();
  /** The soonest first token of any candidate. */
  #soonestNs = 0;
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
    claim.soonestNs = this.#soonestNs;
    claim.pressure = known[PRESSURE];
    claim.waits = this.#survey.waiting + 1 / view.count;
    let choice = lowestCost(view, this.#offers.costs, "rotation");
    if (choice.kind !== "place") return choice;
    choice = this.#considerCopy(view, choice, known);
    this.#foresee(view, choice.replica, known);
    return choice;
  }

  learned(view: CandidateView): ArrayLike<number> {
    this.#look(view);
    const { count, candidates, load, nowNs } = view;
    const { coefficientsNs } = this.#speeds;
    const arrivals = this.#arrivals.at(nowNs);
    this.#survey.waiting = Math.max(0, this.#survey.waiting - comers(view, arrivals / count, coefficientsNs));
    const { waiting, deepest } = this.#survey;
    const size = PER_CANDIDATE + count * CANDIDATE_NUMBERS;
    if (this.#known.length !== size) this.#known = new Float64Array(size);
    const known = this.#known;
    known.set(coefficientsNs);
    known[HIT_SHARE] = this.#hitShare;
    const mayCopy = deepest > 0 && this.#copies.mayCopy(count);
    known[COPY_WORTH] = mayCopy ? this.#copies.rate(view.prefixKey(deepest), nowNs) * this.#paybackNs : 0;
    known[PRESSURE] = this.#pressure.at(nowNs, waiting);
    known[ARRIVALS] = arrivals;
    known[LATE] = this.#late.ns;
    known[WAIT_UNTIL] = this.#shared.isWorthWaiting ? this.#late.ns : 0;
    known[UNDER_WAY_CREDIT] = Math.min(this.#expectedCredit, this.#shared.spared);
    for (let at = 0, first = PER_CANDIDATE; at < count; at++, first += CANDIDATE_NUMBERS) {
      const replica = candidates[at];
      const factor = this.#speeds.factor(replica);
      const waits = load.inFlight[replica] - load.decoding[replica];
      const pendingNs = factor * pendingPromptsNs(load, replica, coefficientsNs);
      known[first] = factor;
      known[first + 1] = 0;
      known[first + 2] = 0;
      known[first + 3] = view.settledBlocks(replica);
      known[first + 4] = 0;
      if (waits <= 0) continue;
      // One step is under way at a time: of what is beyond it nothing is done yet.
      const stepTokens = load.stepTokens[replica] || USUAL_STEP_TOKENS;
      const pendingTokens = load.pendingPrefillTokens[replica];
      const beyondNs = pendingTokens > stepTokens ? pendingNs * (1 - stepTokens / pendingTokens) : 0;
      known[first + 1] = Math.max(beyondNs, this.#prompts.leftNs(replica, nowNs, pendingNs));
      known[first + 2] = Math.min(waits, this.#prompts.together(replica, nowNs));
      known[first + 4] = this.#prompts.waitedNs(replica, nowNs);
    }
    return known;
  }

  explain(view: CandidateView, learned: ArrayLike<number> = this.learned(view)): Explanation {
    const urgency = this.#weigh(view, learned);
    const cheapest = lowestCost(view, this.#offers.costs, "rotation") as Placement;
    const place = this.#placeOfCopy(view, cheapest);
    const candidates = Array.from(view.candidates.subarray(0, view.count), (replica, at) => {
      const spared = at === place ? this.#sparedMs(at, learned[COPY_WORTH]) : 0;
      const harm = this.#judged(view, at, learned, this.#offers.held[at]);
      const terms = [
        ...harmTerms(harm, this.#offers.urgencies[at]),
        { name: "lateness", value: this.#offers.lateness[at] },
        { name: "worth of a copy", value: -spared },
        { name: "too close to tell", value: -this.#offers.overlooked[at] },
      ];
      return { replica, cost: this.#offers.costs[at] - spared, terms };
    });
    const eased = this.#offers.urgencies.subarray(0, view.count).find((there) => there < urgency);
    const inTime = eased === undefined ? "" : ` (${eased.toFixed(1)} × where nobody is late)`;
    const first = `${urgency.toFixed(1)} ×${inTime} (time to first token + prompts put off + prompts to come)`;
    const rule = `${first} + own decode + delay of others + eviction − shared batch + lateness − worth of a copy − too close to tell`;
    return { rule, unit: "ms", candidates };
  }

  observe(signal: PolicySignal): void {
    switch (signal.kind) {
      case "placed":
        return this.#book(signal.nowNs, signal.replica);
      case "replica-reset":
        this.#prompts.forget(signal.replica);
        this.#shared.forget(signal.replica);
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
        this.#shared.firstToken(replica, promptTokens, signal.nowNs - tookNs, tookNs);
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
    const { count } = view;
    this.#offers.makeRoom(count);
    const beliefs = this.#beliefs;
    beliefs.coefficientsNs = known;
    beliefs.hitShare = known[HIT_SHARE];
    beliefs.mostSettled = 0;
    for (let at = 0; at < count; at++) beliefs.mostSettled = Math.max(beliefs.mostSettled, settledBlocks(at, known));
    beliefs.arrivals = known[ARRIVALS] / count;
    const urgency = this.#urgency(known);
    const { costs, held, urgencies, firstTokensNs } = this.#offers;
    let mostHeld = 0;
    let mayWait = false;
    this.#soonestNs = Number.POSITIVE_INFINITY;
    for (let at = 0; at < count; at++) {
      held[at] = this.#countedBlocks(view, at, known);
      urgencies[at] = urgency;
      this.#price(view, at, known);
      mayWait ||= held[at] > beliefs.mostSettled && this.#isInTime(at, known);
      mostHeld = Math.max(mostHeld, held[at]);
      this.#soonestNs = Math.min(this.#soonestNs, firstTokensNs[at]);
    }
    if (mayWait) this.#takeTime(view, known);
    // Who is late wherever it goes has nothing to gain, and would only push others aside.
    const lateNs = this.#soonestNs > known[LATE] ? 0 : known[LATE];
    chargeLateness(this.#offers, count, mostHeld, lateNs, this.#calmUrgency);
    this.#priceWarm(view, known, urgency, mostHeld, lateNs);
    const cheapest = placeOfLowest(costs, count);
    letTakeTurns(this.#offers, count, cheapest, this.#closeMs(view, cheapest, known));
    return urgency;
  }

  /** What all would cost if they held the most of the prompt that any does. */
  #priceWarm(view: CandidateView, known: ArrayLike<number>, urgency: number, mostHeld: number, lateNs: number): void {
    const { costs, warmCosts, held } = this.#offers;
    for (let at = 0; at < view.count; at++) {
      warmCosts[at] = costs[at];
      if (held[at] >= mostHeld) continue;
      const warm = this.#judged(view, at, known, mostHeld);
      warmCosts[at] = costMs(warm, urgency) + latenessMs(firstTokenNs(warm), lateNs, this.#calmUrgency);
    }
  }

  /** How much dearer than the cheapest a candidate may be and still take turns with it. */
  #closeMs({ candidates, load }: CandidateView, cheapest: number, known: ArrayLike<number>): number {
    const share = Math.max(0, 1 - known[HIT_SHARE] / TURNS_BELOW_HIT_SHARE);
    const stepNs = decodeStepNs(load, candidates[cheapest], known);
    return (this.#offers.urgencies[cheapest] * TURN_STEPS * share * stepNs) / NS_PER_MS;
  }

  /**
   * Blocks of the prompt that a candidate counts as holding. One that is on its way through the engine counts for less, but whole
   * where nobody has it yet and nobody's first token is late by waiting for it.
   */
  #countedBlocks(view: CandidateView, at: number, known: ArrayLike<number>): number {
    const settled = settledBlocks(at, known);
    const cached = view.cachedBlocks[view.candidates[at]];
    if (cached > this.#beliefs.mostSettled) {
      this.#judged(view, at, known, cached);
      if (this.#isInTime(at, known)) return cached;
    }
    return settled + known[UNDER_WAY_CREDIT] * (cached - settled);
  }

  /** Whether neither the request judged last nor anybody it would be computed with is late there. */
  #isInTime(at: number, known: ArrayLike<number>): boolean {
    return waitedNs(at, known) + firstTokenNs(this.#harm) <= known[WAIT_UNTIL];
  }

  /** Who can be in time by joining a prompt under way does not hurry, wherever else it would be in time. */
  #takeTime(view: CandidateView, known: ArrayLike<number>): void {
    for (let at = 0; at < view.count; at++) {
      this.#judged(view, at, known, this.#offers.held[at]);
      if (!this.#isInTime(at, known)) continue;
      this.#offers.urgencies[at] = Math.min(this.#offers.urgencies[at], this.#busyUrgency);
      this.#price(view, at, known);
    }
  }

  #price(view: CandidateView, at: number, known: ArrayLike<number>): void {
    const { costs, wastes, held, urgencies, firstTokensNs } = this.#offers;
    const harm = this.#judged(view, at, known, held[at]);
    firstTokensNs[at] = firstTokenNs(harm);
    costs[at] = costMs(harm, urgencies[at]);
    wastes[at] = (urgencies[at] * harm.wasteNs) / NS_PER_MS;
  }

  /** The harm of one candidate if it held so many blocks. */
  #judged(view: CandidateView, at: number, known: ArrayLike<number>, heldBlocks: number): Harm {
    const beliefs = this.#beliefs;
    const first = PER_CANDIDATE + at * CANDIDATE_NUMBERS;
    beliefs.factor = known[first];
    beliefs.aheadNs = known[first + 1];
    beliefs.together = known[first + 2];
    beliefs.heldBlocks = heldBlocks;
    judge(this.#harm, view, view.candidates[at], beliefs);
    return this.#harm;
  }

  /** Makes a copy of the prefix if that has come to be worth its price, and notes what its lack costs if not. */
  #considerCopy(view: CandidateView, cheapest: Placement, known: ArrayLike<number>): Placement {
    const at = this.#placeOfCopy(view, cheapest);
    if (at < 0) return cheapest;
    const { deepest } = this.#survey;
    const paid = this.#offers.costs[view.candidates.indexOf(cheapest.replica)];
    this.#offers.costs[at] -= this.#sparedMs(at, known[COPY_WORTH]);
    const choice = lowestCost(view, this.#offers.costs, "rotation") as Placement;
    const claim = this.#claim;
    claim.key = view.prefixKey(deepest);
    if (choice.replica === view.candidates[at]) claim.copy = "settle";
    else if (settledBlocks(view.candidates.indexOf(cheapest.replica), known) >= deepest) {
      // Only what is there already tells of lasting need: a burst waits for one and the same prompt to be computed.
      claim.copy = "charge";
      // While prompts queue everywhere, one more to compute would be paid for by all of them.
      claim.lackMs = this.#calm(known) ** 2 * (paid - this.#offers.warmCosts[at]);
    }
    return choice;
  }

  /** Where a copy would have been the cheapest of all; -1 if nobody holds anything, or the cheapest is a holder. */
  #placeOfCopy(view: CandidateView, cheapest: Placement): number {
    const warmest = lowestCost(view, this.#offers.warmCosts, "rotation") as Placement;
    if (warmest.replica === cheapest.replica) return -1;
    const at = view.candidates.indexOf(warmest.replica);
    const paid = this.#offers.costs[view.candidates.indexOf(cheapest.replica)];
    return this.#offers.warmCosts[at] < paid ? at : -1;
  }

  /** What a copy takes off its price: a prefix that is worth a copy is not computed in vain. */
  #sparedMs(at: number, worthMs: number): number {
    return worthMs > 0 ? worthMs + this.#offers.wastes[at] : 0;
  }

  /** Notes when the prompt should be done where it is to go. */
  #foresee(view: CandidateView, replica: number, known: ArrayLike<number>): void {
    const { load } = view;
    const claim = this.#claim;
    const { foreseen } = claim;
    const beliefs = this.#beliefs;
    const at = view.candidates.indexOf(replica);
    const settled = settledBlocks(at, known);
    const cached = view.cachedBlocks[replica];
    claim.isSharing = cached > settled;
    if (claim.isSharing) {
      claim.promptTokens = view.promptTokens;
      claim.sharedInNs = firstTokenNs(this.#judged(view, at, known, cached));
      claim.apartInNs = firstTokenNs(this.#judged(view, at, known, settled));
    }
    const harm = this.#judged(view, at, known, this.#offers.held[at]);
    foreseen.isBehindOthers = load.inFlight[replica] > load.decoding[replica];
    foreseen.untilStepNs = load.decoding[replica] > 0 ? (beliefs.factor * decodeStepNs(load, replica, known)) / 2 : 0;
    foreseen.doneInNs = firstTokenNs(harm);
    foreseen.pendingNs = beliefs.factor * pendingPromptsNs(load, replica, known) + harm.promptNs;
  }

  #book(nowNs: number, replica: number): void {
    const { pressure, waits, soonestNs, foreseen, copy, key, lackMs } = this.#claim;
    const { isSharing, promptTokens, sharedInNs, apartInNs } = this.#claim;
    this.#pressure.decided(nowNs, pressure, waits);
    this.#arrivals.arrived(nowNs);
    this.#prompts.placed(replica, nowNs, foreseen);
    if (isSharing) this.#shared.placed(replica, { placedNs: nowNs, promptTokens, sharedInNs, apartInNs });
    this.#late.note(soonestNs);
    if (copy === "charge") this.#copies.charge(key, nowNs, lackMs);
    else if (copy === "settle") this.#copies.settle(key);
    this.#copies.placed();
    this.#claim.copy = "none";
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
}

/** Ours: least predicted harm. */
export const warmpath: PolicyDefinition = {
  name: "warmpath",
  about:
    "Least predicted harm in milliseconds: own first token and decode, delay of others, eviction; copies hot prefixes; learns speeds.",
  parameters: WARMPATH_PARAMETERS,
  create(parameters: PolicyParameters): Policy {
    return new Warmpath(resolveParameters(warmpath.name, warmpath.parameters, parameters));
  },
};
