import {
  DEFAULT_WATERMARKS,
  type AdmissionMode,
  type AdmissionRules,
  type QueueLimits,
  type Watermarks,
} from "./admission/types.ts";
import { NS_PER_SECOND, type Nanoseconds } from "./clock.ts";
import type { DecisionLogOptions } from "./record/decision-log.ts";

export interface AdmissionOptions {
  readonly mode: AdmissionMode;
  readonly watermarks?: Watermarks;
  readonly queue?: QueueLimits;
}

export interface RouterOptions {
  /** Tokens in a KV block; the same on every replica. */
  readonly blockTokens: number;
  readonly maxReplicas: number;
  /** Hard cap of the KV index, in blocks. */
  readonly maxBlocks: number;
  /** Blocks held under engines' own hashes, added over all replicas; takes memory only if some engine speaks them. */
  readonly maxAliases?: number;
  /** Blocks that may be expected at once; replicas without events add room for their KV blocks when they join. */
  readonly maxExpectations?: number;
  /** Whether the KV index may take up to a megabyte more for its table of blocks, to be faster. */
  readonly hasSparseTable?: boolean;
  readonly admission?: AdmissionOptions;
  readonly records?: DecisionLogOptions;
  /** Root of all chance in routing; equal seeds and inputs give equal decisions. */
  readonly seed?: number;
  /** Placements a request may have before a failure is final. */
  readonly maxAttempts?: number;
  /** A request that nothing was heard of for so long no longer counts as load. */
  readonly inactivityNs?: Nanoseconds;
  /** How long a placed prompt is expected to be cached without an event that says so. */
  readonly expectationNs?: Nanoseconds;
  /** Output length to plan with before any request has ended. */
  readonly expectedOutputTokens?: number;
}

/** What may change while requests are under way. */
export interface RouterRules {
  readonly admission: AdmissionRules;
  readonly maxAttempts: number;
  readonly inactivityNs: Nanoseconds;
}

/** KV size assumed of a replica without events that does not say how large its pool is. */
export const DEFAULT_KV_BLOCKS = 4096;

const DEFAULT_MODE: AdmissionMode = "queue";
const DEFAULT_QUEUE: QueueLimits = { maxRequests: 1024, maxWaitNs: 60 * NS_PER_SECOND };

export interface ResolvedRouterOptions {
  readonly blockTokens: number;
  readonly maxReplicas: number;
  readonly maxBlocks: number;
  readonly maxAliases: number;
  readonly maxExpectations: number;
  readonly hasSparseTable: boolean;
  readonly mode: AdmissionMode;
  readonly watermarks: Watermarks;
  readonly queue: QueueLimits;
  readonly records: DecisionLogOptions;
  readonly seed: number;
  readonly maxAttempts: number;
  readonly inactivityNs: Nanoseconds;
  readonly expectationNs: Nanoseconds;
  readonly expectedOutputTokens: number;
}

/** Fills in the defaults. By default a router queues rather than sheds, keeps summaries, and tries three times. */
export function resolveRouterOptions(options: RouterOptions): ResolvedRouterOptions {
  return {
    blockTokens: options.blockTokens,
    maxReplicas: options.maxReplicas,
    maxBlocks: options.maxBlocks,
    maxAliases: options.maxAliases ?? 2 * options.maxBlocks,
    maxExpectations: options.maxExpectations ?? Math.max(4096, options.maxBlocks >> 4),
    hasSparseTable: options.hasSparseTable ?? false,
    mode: options.admission?.mode ?? DEFAULT_MODE,
    watermarks: options.admission?.watermarks ?? DEFAULT_WATERMARKS[options.admission?.mode ?? DEFAULT_MODE],
    queue: options.admission?.queue ?? DEFAULT_QUEUE,
    records: options.records ?? { detail: "summary", capacity: 10_000 },
    seed: options.seed ?? 0,
    maxAttempts: options.maxAttempts ?? 3,
    inactivityNs: options.inactivityNs ?? 600 * NS_PER_SECOND,
    expectationNs: options.expectationNs ?? 30 * NS_PER_SECOND,
    expectedOutputTokens: options.expectedOutputTokens ?? 256,
  };
}
