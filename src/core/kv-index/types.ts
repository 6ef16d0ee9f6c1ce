import type { Nanoseconds } from "../clock.ts";
import type { Tier } from "../replica.ts";

/**
 * What an engine says about its KV cache. Hashes are `[lo, hi]` pairs in a Uint32Array. `engine` hashes are the engine's
 * own and mean nothing outside the replica that sent them; `local` hashes cover the tokens of one block and are ours.
 * An engine that speaks our sequence hashes (a simulated worker) sends `local: null`.
 */
export type KvEventBody =
  | {
      readonly kind: "stored";
      /** Engine hash of the block before the first one; null at the start of a prompt. */
      readonly parent: Uint32Array | null;
      readonly engine: Uint32Array;
      readonly local: Uint32Array | null;
    }
  | { readonly kind: "removed"; readonly engine: Uint32Array }
  | { readonly kind: "cleared" };

/** One change of a replica's cache, and the tier in which it happened. */
export type KvChange = KvEventBody & { readonly tier: Tier };

/** One event of a replica's stream. Ids are consecutive from 0 within an incarnation; a new incarnation starts over. */
export type KvEvent = KvChange & {
  readonly incarnation: string;
  readonly eventId: number;
  /** Changes that the engine sent under the same id, after this one and in this order. */
  readonly more?: readonly KvChange[];
};

/** What the source of a replica's events can do when some of them are lost. */
export interface FeedCapabilities {
  /** How many past events the source can send again; 0 if none. */
  readonly replayDepth: number;
  /** Whether the source can send its whole state. */
  readonly snapshot: boolean;
}

/** Consecutive blocks held by one replica, as they stand in a snapshot; how many copies of each is not told. */
export interface SnapshotRun {
  readonly tier: Tier;
  readonly sequence: Uint32Array;
  /** The engine's own hashes, where they differ from ours. */
  readonly engine: Uint32Array | null;
}

/** The whole confirmed state of one replica as of one event. */
export interface ReplicaSnapshot {
  readonly incarnation: string;
  readonly lastEventId: number;
  readonly runs: readonly SnapshotRun[];
}

/**
 * How deep each lane holds a prompt, in blocks from its start without a break. A lane is one tier of one replica, numbered
 * `tier * maxReplicas + replica`, so that the device lanes come first and are indexed by replica.
 */
export interface Match {
  /** Depth by confirmed or expected evidence. */
  readonly cached: Int32Array;
  /** Depth by confirmed evidence alone. */
  readonly confirmed: Int32Array;
}

export interface KvIndexStats {
  /** Distinct blocks that some lane holds. */
  readonly blocks: number;
  /** Pages in use, of `maxPages`; a page is what the hard cap counts. */
  readonly pages: number;
  readonly maxPages: number;
  /** Chunks in use for holders that do not fit into their page. */
  readonly chunks: number;
  readonly maxChunks: number;
  readonly aliases: number;
  readonly expectations: number;
  /** Bytes of all tables, allocated once. */
  readonly allocatedBytes: number;
  /** Pages forgotten because the cap was reached. */
  readonly evictedPages: number;
  /** Blocks that could not be placed because their parent is unknown, or because a table was full. */
  readonly refusedBlocks: number;
  /** Copies beyond the first that could not be counted. */
  readonly refusedCopies: number;
  /** Removals of blocks that the lane did not hold. */
  readonly unknownRemovals: number;
}

/** What a KV index does, whichever way it does it: the paged one and the naive oracle pass the same suite. */
export interface KvEvidence {
  readonly maxReplicas: number;
  /** Puts a replica's evidence in approximate mode: never confirmed, bounded by the worker's KV size, without expiry. */
  setApproximate(replica: number, kvBlocks: number): void;
  /** We placed a prompt there: expect its blocks until an event confirms them or the expectation expires. */
  expect(replica: number, sequence: Uint32Array, blocks: number, nowNs: Nanoseconds): void;
  /** A placement came to nothing: expect its blocks `from` to `to` no longer. Confirmed evidence stays. */
  retract(replica: number, sequence: Uint32Array, from: number, to: number): void;
  apply(replica: number, tier: Tier, event: KvEventBody): void;
  /** The engine reported how many leading blocks it had cached for a prompt we expected `predicted` of. */
  correct(replica: number, predicted: number, observed: number): void;
  match(sequence: Uint32Array, blocks: number): Match;
  /** Forgets expectations that have expired. */
  expire(nowNs: Nanoseconds): void;
  clearReplica(replica: number): void;
  snapshot(replica: number): SnapshotRun[];
  restore(replica: number, runs: readonly SnapshotRun[]): void;
}
