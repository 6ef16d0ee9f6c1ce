import { NS_PER_MS } from "../clock.ts";
import { CONTEXT_TOKEN, PAIR, PROMPT_BATCH, PROMPT_TOKEN, SEQUENCE, STEP } from "./speed-model.ts";
import type { CandidateView, CostTerm } from "./types.ts";

/** The parts of one candidate's harm, in nanoseconds; filled anew for each. */
export interface Harm {
  slotWaitNs: number;
  memoryWaitNs: number;
  stepNs: number;
  aheadNs: number;
  promptNs: number;
  decodeNs: number;
  stallNs: number;
  slowdownNs: number;
  /** By how much prompts yet to come are later, because this one is computed where it need not be. */
  wasteNs: number;
  evictionNs: number;
  /** What those who decode are spared because the prompt is computed with others. */
  sharedNs: number;
  /** Urgency and the sum. */
  urgency: number;
  totalNs: number;
}

/** What is believed of one candidate, as plain numbers, so that a decision of long ago is judged by what was known then. */
export interface Beliefs {
  /** Nanoseconds of each term of the speed model on a replica of the fleet's usual speed. */
  readonly coefficientsNs: ArrayLike<number>;
  /** How much slower than usual this one is. */
  readonly factor: number;
  /** Query-key pairs of the prompts that wait there. */
  readonly pendingPairs: number;
  /** Requests in the router's queue that wait for it and go first. */
  readonly heldFor: number;
  /** Leading blocks of the prompt that it holds; a block that is only expected counts for less. */
  readonly heldBlocks: number;
  /** Leading blocks that some candidate surely holds: to compute them once more is waste. */
  readonly mostConfirmed: number;
  /** Prompts that come to one replica, per nanosecond. */
  readonly arrivals: number;
  /** Share of prompt tokens that are cached at all. */
  readonly hitShare: number;
  readonly urgency: number;
  /** How surely a prompt that comes to others that wait is computed together with them, from 0 to 1. */
  readonly sharing: number;
}

export function createHarm(): Harm {
  return {
    slotWaitNs: 0,
    memoryWaitNs: 0,
    stepNs: 0,
    aheadNs: 0,
    promptNs: 0,
    decodeNs: 0,
    stallNs: 0,
    slowdownNs: 0,
    wasteNs: 0,
    evictionNs: 0,
    sharedNs: 0,
    urgency: 0,
    totalNs: 0,
  };
}

/** Fills `harm` for one candidate and returns the sum in milliseconds. */
export function judge(harm: Harm, view: CandidateView, replica: number, beliefs: Beliefs): number {
  const { coefficientsNs, factor, pendingPairs: pairs, heldFor, heldBlocks, urgency } = beliefs;
  const { load, promptTokens, blockTokens, expectedOutputTokens: output } = view;
  const requests = load.inFlight[replica];
  const decoding = load.decoding[replica];
  const waiting = requests - decoding;
  const context = load.contextTokens[replica];
  const slots = load.batchSlots[replica];
  const stepTokens = load.stepTokens[replica];
  const pendingTokens = load.pendingPrefillTokens[replica];
  const uncached = Math.max(1, promptTokens - heldBlocks * blockTokens);

  const sequenceNs = factor * coefficientsNs[SEQUENCE];
  const contextNs = factor * coefficientsNs[CONTEXT_TOKEN];
  const stepNs = factor * coefficientsNs[STEP] + sequenceNs * decoding + contextNs * context;
  const ownContext = promptTokens + output / 2;
  const laterStepNs = factor * coefficientsNs[STEP] + sequenceNs * (requests + 1) + contextNs * (context + ownContext);
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
  const over = slots > 0 ? requests + 1 + heldFor - slots : 0;
  harm.slotWaitNs = over > 0 ? over * leavingNs : 0;
  harm.memoryWaitNs = overflow(view, replica, output) * leavingNs;

  harm.decodeNs = output * laterStepNs;
  harm.stallNs = harm.promptNs * decoding;
  harm.slowdownNs = output * (sequenceNs + contextNs * ownContext) * requests;
  const wasted = Math.min(uncached, Math.max(0, beliefs.mostConfirmed - heldBlocks) * blockTokens);
  // So many prompts come while it is computed, and wait for half of it on average.
  harm.wasteNs = (wasted / uncached) * beliefs.arrivals * harm.promptNs * (harm.promptNs / 2);
  harm.evictionNs = beliefs.hitShare * harm.promptNs;
  harm.sharedNs = waiting > 0 ? beliefs.sharing * batchNs * decoding : 0;
  harm.urgency = urgency;
  const firstTokenNs = harm.slotWaitNs + harm.memoryWaitNs + harm.stepNs + harm.aheadNs + harm.promptNs;
  const othersNs = harm.stallNs + harm.slowdownNs + harm.evictionNs - harm.sharedNs;
  harm.totalNs = urgency * (firstTokenNs + harm.wasteNs) + harm.decodeNs + othersNs;
  return harm.totalNs / NS_PER_MS;
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

/** The part that is there because some of the prompt is computed once more. */
export function wasteMs({ urgency, wasteNs }: Harm): number {
  return (urgency * wasteNs) / NS_PER_MS;
}

/** The parts in milliseconds, as they count; they add up to the sum. */
export function harmTerms(harm: Harm): CostTerm[] {
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
    { name: "prompts to come", value: wasteMs(harm) },
    term("eviction", harm.evictionNs),
    term("shared batch", -harm.sharedNs),
  ];
}
