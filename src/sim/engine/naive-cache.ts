import { hashText } from "../../core/hash.ts";
import type { BlockCache, BlockCacheOptions, CacheListener, CacheMatch, Holding } from "./block-cache.ts";

interface Block {
  readonly key: string;
  readonly sequence: Uint32Array;
  readonly at: number;
  references: number;
}

/** What a request holds in a `NaiveCache`. */
export interface NaiveHolding extends Holding {
  published: number;
  unpublished: number;
  readonly blocks: Block[];
}

/** The same rules as `RunCache`, block by block with plain maps and lists: slow, and simple enough to be believed. */
export class NaiveCache implements BlockCache<NaiveHolding> {
  readonly poolBlocks: number;
  readonly #options: BlockCacheOptions;
  readonly #listener: CacheListener;
  /** Copies of each block, in the order they were stored. */
  readonly #copies = new Map<string, Block[]>();
  /** Blocks that nobody holds, the longest released first. */
  #released: Block[] = [];
  #empty: number;
  #evicted = 0;

  constructor(options: BlockCacheOptions, listener: CacheListener) {
    this.poolBlocks = options.poolBlocks;
    this.#empty = options.poolBlocks;
    this.#options = options;
    this.#listener = listener;
  }

  get available(): number {
    return this.#empty + this.#released.length;
  }

  get heldBlocks(): number {
    return this.poolBlocks - this.available;
  }

  get usedBlocks(): number {
    return this.poolBlocks - this.#empty;
  }

  get evictedBlocks(): number {
    return this.#evicted;
  }

  match(sequence: Uint32Array, limit: number): CacheMatch {
    const match: CacheMatch = { blocks: 0, unreferenced: 0 };
    while (match.blocks < Math.min(limit, sequence.length / 2)) {
      const copy = this.#copies.get(keyAt(sequence, match.blocks))?.[0];
      if (copy === undefined) break;
      match.blocks += 1;
      if (copy.references === 0) match.unreferenced += 1;
    }
    return match;
  }

  hold(sequence: Uint32Array, blocks: number): NaiveHolding {
    const holding: NaiveHolding = { published: blocks, unpublished: 0, blocks: [] };
    for (let at = 0; at < blocks; at++) {
      const [block] = this.#copies.get(keyAt(sequence, at)) ?? [];
      if (block.references++ === 0) this.#released = this.#released.filter((other) => other !== block);
      holding.blocks.push(block);
    }
    return holding;
  }

  allocate(holding: NaiveHolding, blocks: number): void {
    while (this.#empty < blocks) this.#evictOne();
    this.#empty -= blocks;
    holding.unpublished += blocks;
  }

  publish(holding: NaiveHolding, sequence: Uint32Array, upTo: number): void {
    for (let at = holding.published; at < upTo; at++) {
      const key = keyAt(sequence, at);
      const block: Block = { key, sequence, at, references: 1 };
      const copies = this.#copies.get(key) ?? [];
      if (copies.length === 0 || this.#options.duplicates === "perCopyEvents")
        this.#listener.stored(sequence, at, at + 1);
      copies.push(block);
      this.#copies.set(key, copies);
      holding.blocks.push(block);
      holding.published += 1;
      holding.unpublished -= 1;
    }
  }

  release(holding: NaiveHolding): void {
    this.#empty += holding.unpublished;
    for (const block of holding.blocks.toReversed()) if (--block.references === 0) this.#released.push(block);
    holding.blocks.length = 0;
    holding.published = 0;
    holding.unpublished = 0;
  }

  contents(): (readonly [Uint32Array, number, number])[] {
    return [...this.#copies.values()]
      .flatMap((copies) => (this.#options.duplicates === "perCopyEvents" ? copies : copies.slice(0, 1)))
      .map((block) => [block.sequence, block.at, block.at + 1] as const);
  }

  #evictOne(): void {
    const [block, ...younger] = this.#released;
    this.#released = younger;
    const copies = (this.#copies.get(block.key) ?? []).filter((other) => other !== block);
    if (copies.length === 0) this.#copies.delete(block.key);
    else this.#copies.set(block.key, copies);
    if (copies.length === 0 || this.#options.duplicates === "perCopyEvents") {
      this.#listener.removed(block.sequence, block.at, block.at + 1);
    }
    this.#empty += 1;
    this.#evicted += 1;
  }
}

function keyAt(sequence: Uint32Array, at: number): string {
  return hashText(sequence[2 * at], sequence[2 * at + 1]);
}
