/**
 * Warmpath: sends a request where it does the least harm, in milliseconds. docs/policy.md has the reasons and the evidence.
 *
 *   harm = urgency × time to first token + own decode + delay of others + eviction
 *
 * - time to first token: slot wait + memory wait + what is left of the step under way + prompts ahead + own uncached prompt,
 *   all with the batch decoding along;
 * - own decode: expected answer × step time with this request in the batch;
 * - delay of others: its prompt stops everyone who decodes there, and every step of its answer makes theirs longer;
 * - eviction: where the pool is full, what it stores pushes out as much, which somebody would have reused as often as prompts
 *   are cached at all.
 *
 * Urgency is high while prompts do not queue: then a first token is all there is to win, and nobody pays for it. It falls
 * as they do, because then harm to others is what makes everybody's first token late.
 *
 * Times come from a `SpeedModel` that learns from streamed tokens and starts from a prior that fits any accelerator to within a
 * factor the first signals settle.
 */
import { lowestCost, NO_CANDIDATE } from "./lowest-cost.ts";
import { numberParameter, resolveParameters } from "./parameters.ts";
import {
  CONTEXT_TOKEN,
  PAIR,
  PROMPT_BATCH,
  PROMPT_TOKEN,
  SEQUENCE,
  SPEED_TERMS,
  SpeedModel,
  STEP,
} from "./speed-model.ts";
import type {
  CandidateView,
  Choice,
  CostTerm,
  Explanation,
  Policy,
  PolicyDefinition,
  PolicyParameters,
  PolicySignal,
} from "./types.ts";

const NS_PER_MS = 1e6;
const HOLD: Choice = { kind: "hold" };

/** How much of a new signal goes into the learned share of cached prompt tokens. */
const HIT_GAIN = 0.01;
/** Noise of the two kinds of signals: a run of tokens is regular, a first token depends on where in a step it came. */
const TOKENS_NOISE = 0.2;
const FIRST_TOKEN_NOISE = 0.5;

/** A learned state as numbers: the terms, the hit share, then for each candidate its factor and pending pairs. */
const HIT_SHARE = SPEED_TERMS.length;
const PER_CANDIDATE = HIT_SHARE + 1;
const CANDIDATE_NUMBERS = 2;

/** The parts of one candidate's harm, in nanoseconds; filled anew for each. */
interface Harm {
  slotWaitNs: number;
  memoryWaitNs: number;
  stepNs: number;
  aheadNs: number;
  promptNs: number;
  decodeNs: number;
  stallNs: number;
  slowdownNs: number;
  evictionNs: number;
  /** Urgency and the sum. */
  urgency: number;
  totalNs: number;
}

class Warmpath implements Policy {
  readonly name = "warmpath";
  readonly usesActivePrefix = false;
  readonly parameters: PolicyParameters;
  readonly #speeds: SpeedModel;
  readonly #calmUrgency: number;
  readonly #busyUrgency: number;
  readonly #queueHalf: number;
  readonly #expectedCredit: number;
  readonly #harm: Harm = {
    slotWaitNs: 0,
    memoryWaitNs: 0,
    stepNs: 0,
    aheadNs: 0,
    promptNs: 0,
    decodeNs: 0,
    stallNs: 0,
    slowdownNs: 0,
    evictionNs: 0,
    urgency: 0,
    totalNs: 0,
  };
  #costs: Float64Array = new Float64Array(64);
  #hitShare = 0;

  constructor(parameters: PolicyParameters) {
    this.parameters = parameters;
    this.#calmUrgency = numberParameter(parameters, "calmUrgency");
    this.#busyUrgency = numberParameter(parameters, "busyUrgency");
    this.#queueHalf = numberParameter(parameters, "queueHalf");
    this.#expectedCredit = numberParameter(parameters, "expectedCredit");
    this.#speeds = new SpeedModel(numberParameter(parameters, "speedPriorFactor"));
  }

  choose(view: CandidateView): Choice {
    const { count, candidates } = view;
    if (count === 0) return NO_CANDIDATE;
    if (this.#costs.length < count) this.#costs = new Float64Array(2 * count);
    const costs = this.#costs;
    const coefficients = this.#speeds.coefficientsNs;
    const { pendingPrefillPairs } = view.load;
    const urgency = this.#urgency(view);
    for (let at = 0; at < count; at++) {
      const replica = candidates[at];
      const factor = this.#speeds.factor(replica);
      const pairs = pendingPrefillPairs[replica];
      this.#judge(view, replica, coefficients, this.#hitShare, factor, pairs, urgency);
      costs[at] = this.#harm.totalNs / NS_PER_MS;
    }
    const choice = lowestCost(view, costs, "rotation");
    return view.mayHold && choice.kind === "place" && isFull(view, choice.replica) ? HOLD : choice;
  }

  learned(view: CandidateView): readonly number[] {
    const { count, candidates, load } = view;
    const numbers: number[] = [...this.#speeds.coefficientsNs, this.#hitShare];
    for (let at = 0; at < count; at++) {
      const replica = candidates[at];
      numbers.push(this.#speeds.factor(replica), load.pendingPrefillPairs[replica]);
    }
    return numbers;
  }

  explain(view: CandidateView, learned: readonly number[] = this.learned(view)): Explanation {
    const urgency = this.#urgency(view);
    const candidates = Array.from(view.candidates.subarray(0, view.count), (replica, at) => {
      const first = PER_CANDIDATE + at * CANDIDATE_NUMBERS;
      const [factor = 1, pairs = 0] = learned.slice(first, first + CANDIDATE_NUMBERS);
      this.#judge(view, replica, learned, learned[HIT_SHARE], factor, pairs, urgency);
      return { replica, cost: this.#harm.totalNs / NS_PER_MS, terms: termsOf(this.#harm) };
    });
    const rule = `${urgency.toFixed(1)} × time to first token + own decode + delay of others + eviction`;
    return { rule, unit: "ms", candidates };
  }

  observe(signal: PolicySignal): void {
    switch (signal.kind) {
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

  /** How much a first token counts for, by how many prompts wait at a replica on average. */
  #urgency({ count, candidates, load }: CandidateView): number {
    let waiting = 0;
    for (let at = 0; at < count; at++) waiting += load.inFlight[candidates[at]] - load.decoding[candidates[at]];
    const queue = waiting / Math.max(1, count) / this.#queueHalf;
    return this.#busyUrgency + (this.#calmUrgency - this.#busyUrgency) / (1 + queue * queue);
  }

  /** Fills `#harm` for one candidate. Plain numbers in, so that a decision of long ago is judged by what was known then. */
  #judge(
    view: CandidateView,
    replica: number,
    coefficientsNs: ArrayLike<number>,
    hitShare: number,
    factor: number,
    pairs: number,
    urgency: number,
  ): void {
    const { load, promptTokens, blockTokens, expectedOutputTokens: output } = view;
    const harm = this.#harm;
    const requests = load.inFlight[replica];
    const decoding = load.decoding[replica];
    const waiting = requests - decoding;
    const context = load.contextTokens[replica];
    const slots = load.batchSlots[replica];
    const stepTokens = load.stepTokens[replica];
    const pendingTokens = load.pendingPrefillTokens[replica];
    const confirmed = view.confirmedBlocks[replica];
    // What is only expected may still be on its way through the engine.
    const held = confirmed + this.#expectedCredit * (view.cachedBlocks[replica] - confirmed);
    const uncached = Math.max(1, promptTokens - held * blockTokens);

    const sequenceNs = factor * coefficientsNs[SEQUENCE];
    const contextNs = factor * coefficientsNs[CONTEXT_TOKEN];
    const stepNs = factor * coefficientsNs[STEP] + sequenceNs * decoding + contextNs * context;
    const ownContext = promptTokens + output / 2;
    const laterStepNs =
      factor * coefficientsNs[STEP] + sequenceNs * (requests + 1) + contextNs * (context + ownContext);
    const promptTokenNs = factor * coefficientsNs[PROMPT_TOKEN];
    const pairNs = factor * coefficientsNs[PAIR];
    const batchNs = factor * coefficientsNs[PROMPT_BATCH];

    const ownPairs = uncached * (promptTokens - uncached / 2);
    // Its own batch even where others wait: by the time it comes, theirs has begun as often as not.
    harm.promptNs = uncached * promptTokenNs + ownPairs * pairNs + batchNs;
    // Counted whole until its first token is seen: to guess how much of a prompt is done by now made things worse.
    harm.aheadNs = waiting > 0 ? pendingTokens * promptTokenNs + pairs * pairNs + batchNs : 0;
    const chunks = stepTokens > 0 ? Math.max(1, Math.ceil((pendingTokens + uncached) / stepTokens)) : 1;
    harm.stepNs = (decoding > 0 ? chunks + 0.5 : chunks) * stepNs;

    const leavingNs = requests > 0 ? (output * laterStepNs) / requests : 0;
    const over = slots > 0 ? requests + 1 - slots : 0;
    harm.slotWaitNs = over > 0 ? over * leavingNs : 0;
    harm.memoryWaitNs = overflow(view, replica, output) * leavingNs;

    harm.decodeNs = output * laterStepNs;
    harm.stallNs = harm.promptNs * decoding;
    harm.slowdownNs = output * (sequenceNs + contextNs * ownContext) * requests;
    harm.evictionNs = hitShare * harm.promptNs;
    harm.urgency = urgency;
    const firstTokenNs = harm.slotWaitNs + harm.memoryWaitNs + harm.stepNs + harm.aheadNs + harm.promptNs;
    harm.totalNs = urgency * firstTokenNs + harm.decodeNs + harm.stallNs + harm.slowdownNs + harm.evictionNs;
  }
}

function isFull({ load }: CandidateView, replica: number): boolean {
  const slots = load.batchSlots[replica];
  return slots > 0 && load.inFlight[replica] >= slots;
}

/**
 * Requests that must leave before the prompt and its answer fit into the pool; 0 where the pool is unknown. Only blocks that
 * surely nobody shares are counted: shared prefixes counted once for each holder make a pool look full that is not.
 */
function overflow({ load, promptTokens, blockTokens }: CandidateView, replica: number, output: number): number {
  const pool = load.kvBlocks[replica];
  const taken = load.newBlocks[replica];
  if (pool === 0 || taken === 0) return 0;
  const over = taken + (promptTokens + output) / blockTokens - pool;
  return over > 0 ? (over * load.inFlight[replica]) / taken : 0;
}

function termsOf(harm: Harm): CostTerm[] {
  const { urgency } = harm;
  const term = (name: string, ns: number): CostTerm => ({ name, value: ns / NS_PER_MS });
  return [
    term("slot wait", urgency * harm.slotWaitNs),
    term("memory wait", urgency * harm.memoryWaitNs),
    term("steps until then", urgency * harm.stepNs),
    term("prompts ahead", urgency * harm.aheadNs),
    term("own prompt", urgency * harm.promptNs),
    term("own decode", harm.decodeNs),
    term("others stopped", harm.stallNs),
    term("others slowed", harm.slowdownNs),
    term("eviction", harm.evictionNs),
  ];
}

/** Ours: least predicted harm. */
export const warmpath: PolicyDefinition = {
  name: "warmpath",
  about: "Least predicted harm in milliseconds: own first token and decode, delay of others, eviction; learns speeds.",
  parameters: {
    calmUrgency: {
      kind: "number",
      default: 40,
      minimum: 0,
      maximum: 1000,
      about: "what a millisecond of time to first token counts for while no prompts queue",
    },
    busyUrgency: {
      kind: "number",
      default: 1.5,
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
    expectedCredit: {
      kind: "number",
      default: 0.7,
      minimum: 0,
      maximum: 1,
      about: "what an expected block counts for that no event has confirmed",
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
