/**
 * A replica is what a request is placed on: one data-parallel rank of one worker, with a KV cache and a batch of its
 * own. Replicas have a dense index while they are in the fleet; all hot state is kept in columns over that index.
 */
export interface ReplicaSpec {
  /** Name of the worker, unique in the fleet. */
  readonly worker: string;
  /** Data-parallel rank inside the worker; 0 where the engine has no ranks. */
  readonly dpRank?: number;
  /** Requests the engine decodes at once; unknown if absent. */
  readonly batchSlots?: number;
  /** KV blocks in the engine's device pool; unknown if absent. */
  readonly kvBlocks?: number;
  /** Tokens the engine computes in one step at most; unknown if absent. */
  readonly stepTokens?: number;
  /** What the replica may be given; disaggregated roles are a seam for later. */
  readonly role?: ReplicaRole;
}

export type ReplicaRole = "both" | "prefill" | "decode";

/** `draining` finishes what it has and gets nothing new; `down` is known but cannot be reached. */
export type ReplicaState = "ready" | "draining" | "down";

/** Where KV blocks can live; only `device` blocks are free to use, the others must be fetched first. */
export type Tier = "device" | "host" | "disk" | "remote";

export const TIERS: readonly Tier[] = ["device", "host", "disk", "remote"];

/** The router's own view of every replica's load, one entry per replica index. Policies read it, only the load model writes it. */
export interface LoadColumns {
  /** Requests placed and not ended. */
  readonly inFlight: Int32Array;
  /** Of those, the ones whose first token was seen. */
  readonly decoding: Int32Array;
  /** Prompt tokens placed, not cached, and not known to be computed. */
  readonly pendingPrefillTokens: Float64Array;
  /** Query-key pairs of those prompts: what attention adds to long ones. */
  readonly pendingPrefillPairs: Float64Array;
  /** Context (prompt and output) tokens of the requests being decoded. */
  readonly contextTokens: Float64Array;
  /** KV blocks of all requests in flight, prompt and output; shared blocks counted for each holder. */
  readonly activeBlocks: Int32Array;
  /** Of those, the ones that were not cached when their request was placed: no two requests share them. */
  readonly newBlocks: Int32Array;
  /** Batch slots, KV pool and step size as configured, scraped or learned; 0 is unknown. */
  readonly batchSlots: Int32Array;
  readonly kvBlocks: Int32Array;
  readonly stepTokens: Int32Array;
}
