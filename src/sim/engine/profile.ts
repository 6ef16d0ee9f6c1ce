import { WarmpathError } from "../../core/errors.ts";
import type { DuplicateEvents } from "./block-cache.ts";

/** What tells one engine's scheduler and cache from another's. */
export interface EngineProfile {
  readonly name: string;
  /**
   * When prompt blocks can be found by others: when the step that computes them is scheduled, when it ends, or when the
   * whole prompt is computed.
   */
  readonly cacheVisibleAt: "schedule" | "stepEnd" | "contextEnd";
  /** When blocks of the answer can be found: as they fill, or when the request has ended. */
  readonly outputVisibleAt: "filled" | "finished";
  /** Whether a hit may end inside a block. */
  readonly partialReuse: boolean;
  /** What is computed again of a prompt that is cached whole: its last block, or its last token. */
  readonly recomputeLast: "block" | "token";
  /** Whether speculation costs the last block of every hit. */
  readonly dropLastBlockWithSpec: boolean;
  /** What must have room before a request is admitted: its first chunk, its input, or its input and longest output. */
  readonly admission: "firstChunk" | "fullInput" | "toCompletion";
  /**
   * Who gives way when blocks run out: the request admitted last, which computes everything again; nobody, because
   * admission made sure; or the one with the least output, whose answer blocks are lost.
   */
  readonly preempt: "recomputeLast" | "none" | "retract";
  readonly duplicates: DuplicateEvents;
  /** Whether events leave the engine at the end of a step or at the moment they happen. */
  readonly eventFlush: "stepEnd" | "async";
  /** Steps that are scheduled before the one under way has ended: 1 lets a finished request occupy one step more. */
  readonly asyncSchedulingDepth: 0 | 1;
  /** Whether decodes run on in a step that computes prompts, or stand still. */
  readonly prefillSteps: "mixed" | "alone";
  /** Whether a chunk that is not its prompt's last is a whole number of blocks. */
  readonly chunkIsWholeBlocks: boolean;
  /** Blocks of the pool that no request ever gets. */
  readonly reservedBlocks: number;
  /** Steps for which prompts may be held back so that more of them are computed together; 0 computes them at once. */
  readonly batchWaitSteps: number;
  /** Prompts are held back only while the step has less than this share of its tokens. */
  readonly batchWaitTokensRatio: number;
}

/** vLLM v1: hashes at schedule time, a free list by age of release, per-copy events, recompute preemption. */
export const VLLM: EngineProfile = {
  name: "vllm",
  cacheVisibleAt: "schedule",
  outputVisibleAt: "filled",
  partialReuse: false,
  recomputeLast: "block",
  dropLastBlockWithSpec: true,
  admission: "fullInput",
  preempt: "recomputeLast",
  duplicates: "perCopyEvents",
  eventFlush: "stepEnd",
  asyncSchedulingDepth: 1,
  prefillSteps: "mixed",
  chunkIsWholeBlocks: false,
  reservedBlocks: 1,
  batchWaitSteps: 0,
  batchWaitTokensRatio: 0,
};

/** TensorRT-LLM: admits what fits to completion, reuses a context once it is whole, also parts of blocks. */
export const TRTLLM: EngineProfile = {
  name: "trtllm",
  cacheVisibleAt: "contextEnd",
  outputVisibleAt: "filled",
  partialReuse: true,
  recomputeLast: "token",
  dropLastBlockWithSpec: false,
  admission: "toCompletion",
  preempt: "none",
  duplicates: "firstLastCopyEvents",
  eventFlush: "stepEnd",
  asyncSchedulingDepth: 1,
  prefillSteps: "mixed",
  chunkIsWholeBlocks: true,
  reservedBlocks: 0,
  batchWaitSteps: 0,
  batchWaitTokensRatio: 0,
};

/** SGLang: a radix tree filled after each chunk and at the end, prompts computed alone, retraction. */
export const SGLANG: EngineProfile = {
  name: "sglang",
  cacheVisibleAt: "stepEnd",
  outputVisibleAt: "finished",
  partialReuse: false,
  recomputeLast: "token",
  dropLastBlockWithSpec: false,
  admission: "firstChunk",
  preempt: "retract",
  duplicates: "firstLastCopyEvents",
  eventFlush: "stepEnd",
  asyncSchedulingDepth: 1,
  prefillSteps: "alone",
  chunkIsWholeBlocks: true,
  reservedBlocks: 0,
  batchWaitSteps: 0,
  batchWaitTokensRatio: 0,
};

/** The profiles by name. */
export const ENGINE_PROFILES: Readonly<Record<string, EngineProfile>> = { vllm: VLLM, trtllm: TRTLLM, sglang: SGLANG };

/** The profile of a backend, with some switches set otherwise. */
export function engineProfile(backend: string, changes: Partial<EngineProfile> = {}): EngineProfile {
  const profile = ENGINE_PROFILES[backend];
  if (profile === undefined) {
    const known = Object.keys(ENGINE_PROFILES).join(", ");
    throw new WarmpathError("WP_INVALID_INPUT", `no engine profile is called ${backend}; there are ${known}`);
  }
  return { ...profile, ...changes };
}

/** The sizes an engine is started with. */
export interface EngineLimits {
  readonly blockTokens: number;
  /** Blocks in the KV pool, from a memory plan or from an engine's log. */
  readonly poolBlocks: number;
  /** Requests in a step at most. */
  readonly maxSequences: number;
  /** New tokens in a step at most, prompts and decodes together. */
  readonly maxTokensPerStep: number;
  /** Without it a prompt waits until it fits a step whole. */
  readonly chunkedPrefill: boolean;
  /** Without it every prompt is computed whole. */
  readonly prefixReuse: boolean;
}

/** Drafts of a small model that the large one verifies. */
export interface SpeculationLimits {
  readonly drafts: number;
  readonly acceptanceMean: number;
  /** Requests differ in how predictable they are. */
  readonly acceptanceDeviation: number;
}

/** Refuses an engine that could not run, before anything does. */
export function requireRunnable(profile: EngineProfile, limits: EngineLimits, drafts: number): void {
  const refuse = (message: string): never => {
    throw new WarmpathError("WP_INVALID_INPUT", message);
  };
  for (const name of ["blockTokens", "poolBlocks", "maxSequences", "maxTokensPerStep"] as const) {
    const value = limits[name];
    if (!(Number.isSafeInteger(value) && value > 0))
      refuse(`${name} must be a whole number of at least 1, not ${value}`);
  }
  if (limits.poolBlocks <= profile.reservedBlocks) {
    refuse(`poolBlocks is ${limits.poolBlocks}; ${profile.name} keeps ${profile.reservedBlocks} for itself`);
  }
  const decodeTokens = limits.maxSequences * (drafts + 1);
  if (limits.maxTokensPerStep < decodeTokens) {
    const step = `maxTokensPerStep is ${limits.maxTokensPerStep}`;
    refuse(`${step}, less than the ${decodeTokens} that ${limits.maxSequences} decoding requests take in a step`);
  }
  const { batchWaitSteps, batchWaitTokensRatio } = profile;
  if (!(Number.isSafeInteger(batchWaitSteps) && batchWaitSteps >= 0)) {
    refuse(`batchWaitSteps must be a whole number of at least 0, not ${batchWaitSteps}`);
  }
  if (batchWaitSteps > 0 !== batchWaitTokensRatio > 0) {
    refuse("batchWaitSteps and batchWaitTokensRatio have no effect without each other");
  }
  if (profile.preempt === "none" && profile.admission !== "toCompletion") {
    refuse(`without preemption admission must be toCompletion, not ${profile.admission}: blocks could run out`);
  }
  if (
    profile.chunkIsWholeBlocks &&
    limits.chunkedPrefill &&
    limits.maxTokensPerStep < decodeTokens + limits.blockTokens
  ) {
    const step = `maxTokensPerStep is ${limits.maxTokensPerStep}`;
    refuse(`${step}, which leaves no room for a block of ${limits.blockTokens} tokens beside ${decodeTokens} decodes`);
  }
}
