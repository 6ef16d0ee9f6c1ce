/**
 * The KV blocks of one replica: who holds them, which of them can be found again by prefix, and in which order the others
 * are given up. Two implementations: `RunCache` works on runs of blocks, `NaiveCache` block by block and is the oracle of
 * the property tests.
 */

/** What a request holds: leading published blocks of its sequence, and blocks that nobody else can find. */
export interface Holding {
  /** Leading blocks held in a published copy, shared or its own. */
  readonly published: number;
  /** Blocks behind them that are allocated and not published. */
  readonly unpublished: number;
}

/** Whether each physical copy of a block is announced, or only the first one stored and the last one removed. */
export type DuplicateEvents = "perCopyEvents" | "firstLastCopyEvents";

export interface BlockCacheOptions {
  readonly poolBlocks: number;
  readonly duplicates: DuplicateEvents;
}

/** Hears what becomes findable and what no longer is; blocks `from` (included) to `to` of `sequence`. */
export interface CacheListener {
  stored(sequence: Uint32Array, from: number, to: number): void;
  /** Given up from the last block to the first. */
  removed(sequence: Uint32Array, from: number, to: number): void;
}

/** Leading blocks found for a prompt. */
export interface CacheMatch {
  blocks: number;
  /** Of those, the ones nobody holds: taking them costs room as if they were new. */
  unreferenced: number;
}

export interface BlockCache<H extends Holding = Holding> {
  readonly poolBlocks: number;
  /** Blocks that can be allocated now: empty ones, and cached ones that nobody holds. */
  readonly available: number;
  /** Blocks that requests hold. */
  readonly heldBlocks: number;
  /** Blocks with content, held or not. */
  readonly usedBlocks: number;
  /** Cached blocks given up to make room, over all time. */
  readonly evictedBlocks: number;
  /** Looks a prompt up, at most `limit` blocks of it; the result is reused by the next call. */
  match(sequence: Uint32Array, limit: number): CacheMatch;
  /** Takes the first `blocks` blocks of a sequence, which must just have been matched. */
  hold(sequence: Uint32Array, blocks: number): H;
  /** Adds unpublished blocks to a holding, and gives up old ones where that is needed; there must be as many available. */
  allocate(holding: H, blocks: number): void;
  /** Makes the holding's blocks up to `upTo` findable. */
  publish(holding: H, sequence: Uint32Array, upTo: number): void;
  /** Gives all blocks of a holding back; published ones stay findable until they are evicted. */
  release(holding: H): void;
  /** Everything that can be found, as runs of `[sequence, from, to]`. */
  contents(): (readonly [Uint32Array, number, number])[];
}
