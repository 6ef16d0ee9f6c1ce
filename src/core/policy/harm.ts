import { NS_PER_MS } from "../clock.ts";
import type { LoadColumns } from "../replica.ts";
import { CONTEXT_TOKEN, PROMPT_BATCH, promptBatchNs, SEQUENCE, STEP } from "./speed-model.ts";
import type { CandidateView, CostTerm } from "./types.ts";

/**
 * What sharing a batch counts for. Who is in a step is the engine's affair, and some engines fix it a step ahead: of prompts that should meet some
 * six in ten do, and whoever misses the others waits for their batch and stops everybody once more.
 */
const MEETING_ODDS = 0.25;
/**
 * Prompts that come to a replica in the time of one step, from about where on every step has some whatever is done: then none is what makes a
 * step long, and nobody is spared anything by two of them meeting. Below, whether steps without prompts are left is up to where they are sent.
 */
const PROMPTS_IN_EVERY_STEP = 7;
/** Where every step has prompts, so many pass until whoever comes has been in one: the rest of that under way, one that is fixed already, its own. */
const STEPS_UNTIL_FIRST = 2.5;

/** The parts of one candidate's harm, in nanoseconds; filled anew for each. */
export interface Harm {
  slotWaitNs: number;
  memoryWaitNs: number;
  stepNs: number;
  aheadNs: number;
  promptNs: number;
  /** By how much those are later who are computed with it. */
  putOffNs: number;
  /** By how much prompts yet to come are later, because this one is computed where it need not be. */
  wasteNs: number;
  decodeNs: number;
  stallNs: number;
  slowdownNs: number;
  evictionNs: number;
  /** What those who decode are spared because the prompt is computed with others. */
  sharedNs: number;
}

/** What is believed of one candidate, as plain numbers, so that a decision of long ago is judged by what was known then. */
export interface Beliefs {
  /** Nanoseconds of each term of the speed model on a replica of the fleet's usual speed. */
  readonly coefficientsNs: ArrayLike<number>;
  /** How much slower than usual this one is. */
  readonly factor: number;
  /** What is left to compute of the prompts that wait there. */
  readonly aheadNs: number;
  /** How many of them this one would be computed with. */
  readonly together: number;
  /** Leading blocks of the prompt that it holds; a block that is only expected counts for less. */
  readonly heldBlocks: number;
  /** Leading blocks that some candidate surely holds: to compute them once more is waste. */
  readonly mostSettled: number;
  /** Prompts that come to one replica, per nanosecond. */
  readonly arrivals: number;
  /** Share of prompt tokens that are cached at all. */
  readonly hitShare: number;
}

export function createHarm(): Harm {
  return {
    slotWaitNs: 0,
    memoryWaitNs: 0,
    stepNs: 0,
    aheadNs: 0,
    promptNs: 0,
    putOffNs: 0,
    wasteNs: 0,
    decodeNs: 0,
    stallNs: 0,
    slowdownNs: 0,
    evictionNs: 0,
    sharedNs: 0,
  };
}

/** Time to compute all prompts that wait at a replica, from the first token of the first on. */
export function pendingPromptsNs(load: LoadColumns, replica: number, coefficientsNs: ArrayLike<number>): number {
  if (load.inFlight[replica] <= load.decoding[replica]) return 0;
  return promptBatchNs(load.pendingPrefillTokens[replica], load.pendingPrefillPairs[replica], coefficientsNs);
}

/** One step of a replica as it decodes now. */
export function decodeStepNs(load: LoadColumns, replica: number, coefficientsNs: ArrayLike<number>): number {
  return (
    coefficientsNs[STEP] +
    coefficientsNs[SEQUENCE] * load.decoding[replica] +
    coefficientsNs[CONTEXT_TOKEN] * load.contextTokens[replica]
  );
}

/**
 * Prompts that are merely on their way into a step of a replica, to which so many come per nanosecond: where every step has some, that many
 * wait at any time and are no queue.
 */
export function comers(view: CandidateView, arrivals: number, coefficientsNs: ArrayLike<number>): number {
  const { count, candidates, load } = view;
  if (count === 0) return 0;
  let stepsNs = 0;
  for (let at = 0; at < count; at++) stepsNs += decodeStepNs(load, candidates[at], coefficientsNs);
  const inStep = arrivals * (stepsNs / count + coefficientsNs[PROMPT_BATCH]);
  return STEPS_UNTIL_FIRST * inStep * (1 - launchShare(inStep));
}

/** Fills `harm` for one candidate. */
export function judge(harm: Harm, view: CandidateView, replica: number, beliefs: Beliefs): void {
  const { coefficientsNs, factor, together, heldBlocks } = beliefs;
  const { load, promptTokens, blockTokens, expectedOutputTokens: output } = view;
  const requests = load.inFlight[replica];
  const decoding = load.decoding[replica];
  const context = load.contextTokens[replica];
  const slots = load.batchSlots[replica];
  const stepTokens = load.stepTokens[replica];
  const uncached = Math.max(1, promptTokens - heldBlocks * blockTokens);

  const sequenceNs = factor * coefficientsNs[SEQUENCE];
  const contextNs = factor * coefficientsNs[CONTEXT_TOKEN];
  const stepNs = factor * decodeStepNs(load, replica, coefficientsNs);
  const ownContext = promptTokens + output / 2;
  const laterStepNs = factor * coefficientsNs[STEP] + sequenceNs * (requests + 1) + contextNs * (context + ownContext);
  const batchNs = factor * coefficientsNs[PROMPT_BATCH];

  const ownPairs = uncached * (promptTokens - uncached / 2);
  // Its own batch even where others wait: by the time it comes, theirs has begun as often as not.
  harm.promptNs = factor * promptBatchNs(uncached, ownPairs, coefficientsNs);
  harm.aheadNs = beliefs.aheadNs;
  const pendingTokens = load.pendingPrefillTokens[replica];
  const chunks = stepTokens > 0 ? Math.max(1, Math.ceil((pendingTokens + uncached) / stepTokens)) : 1;
  harm.stepNs = (decoding > 0 ? chunks + 0.5 : chunks) * stepNs;

  const leavingNs = requests > 0 ? (output * laterStepNs) / requests : 0;
  const over = slots > 0 ? requests + 1 - slots : 0;
  harm.slotWaitNs = over > 0 ? over * leavingNs : 0;
  harm.memoryWaitNs = overflow(view, replica, output) * leavingNs;

  harm.putOffNs = together * harm.promptNs;
  const wasted = Math.min(uncached, Math.max(0, beliefs.mostSettled - heldBlocks) * blockTokens);
  // So many prompts come while it is computed, and wait for half of it on average.
  harm.wasteNs = (wasted / uncached) * beliefs.arrivals * harm.promptNs * (harm.promptNs / 2);

  harm.decodeNs = output * laterStepNs;
  const launchNs = batchNs * launchShare(beliefs.arrivals * (harm.promptNs + stepNs));
  harm.stallNs = (harm.promptNs - batchNs + launchNs) * decoding;
  harm.slowdownNs = output * (sequenceNs + contextNs * ownContext) * requests;
  harm.evictionNs = beliefs.hitShare * harm.promptNs;
  harm.sharedNs = together > 0 ? MEETING_ODDS * launchNs * decoding : 0;
}

export function firstTokenNs({ slotWaitNs, memoryWaitNs, stepNs, aheadNs, promptNs }: Harm): number {
  return slotWaitNs + memoryWaitNs + stepNs + aheadNs + promptNs;
}

/** The sum in milliseconds: first tokens, its own and those of others, count by how urgent they are, all else as it is. */
export function costMs(harm: Harm, urgency: number): number {
  const { putOffNs, wasteNs, decodeNs, stallNs, slowdownNs, evictionNs, sharedNs } = harm;
  const firstTokensNs = firstTokenNs(harm) + putOffNs + wasteNs;
  return (urgency * firstTokensNs + decodeNs + stallNs + slowdownNs + evictionNs - sharedNs) / NS_PER_MS;
}

/** How much of launching a batch of prompts is for one of them to answer for, where so many come in the time of a step. */
function launchShare(promptsInStep: number): number {
  return Math.exp(-((promptsInStep / PROMPTS_IN_EVERY_STEP) ** 2));
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

/** The parts in milliseconds, as they count; they add up to the cost. */
export function harmTerms(harm: Harm, urgency: number): CostTerm[] {
  const term = (name: string, ns: number): CostTerm => ({ name, value: ns / NS_PER_MS });
  return [
    term("slot wait", urgency * harm.slotWaitNs),
    term("memory wait", urgency * harm.memoryWaitNs),
    term("steps until then", urgency * harm.stepNs),
    term("prompts ahead", urgency * harm.aheadNs),
    term("own prompt", urgency * harm.promptNs),
    term("prompts put off", urgency * harm.putOffNs),
    term("prompts to come", urgency * harm.wasteNs),
    term("own decode", harm.decodeNs),
    term("others stopped", harm.stallNs),
    term("others slowed", harm.slowdownNs),
    term("eviction", harm.evictionNs),
    term("shared batch", -harm.sharedNs),
  ];
}
