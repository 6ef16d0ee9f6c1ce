import { fullBlocks } from "../core/hash.ts";

interface Tail {
  readonly hi: number;
  readonly tokens: Uint32Array;
}

/** Stands for the hash before the first block. */
const START = { lo: 0, hi: 0 };

/**
 * What requests leave behind the last full block of their context. Engines that reuse parts of blocks compute a prompt only
 * from where it departs from such a tail. One tail is kept behind each block, the newest.
 */
export class BlockTails {
  readonly #blockTokens: number;
  readonly #mostTails: number;
  /** By the low lane of the block before it, in the order they were left. */
  readonly #tails = new Map<number, Tail>();

  constructor(blockTokens: number, mostTails: number) {
    this.#blockTokens = blockTokens;
    this.#mostTails = mostTails;
  }

  /** A request leaves this much of its context in the cache. */
  leave(context: Uint32Array, sequence: Uint32Array, computedTokens: number): void {
    const blocks = fullBlocks(computedTokens, this.#blockTokens);
    const { lo, hi } = hashBefore(sequence, blocks);
    this.#tails.delete(lo);
    const tokens = context.slice(blocks * this.#blockTokens, computedTokens);
    if (tokens.length === 0) return;
    this.#tails.set(lo, { hi, tokens });
    if (this.#tails.size <= this.#mostTails) return;
    for (const oldest of this.#tails.keys()) {
      this.#tails.delete(oldest);
      return;
    }
  }

  clear(): void {
    this.#tails.clear();
  }

  /** How many leading tokens of a prompt end in a tail, the deepest there is; 0 if none does. */
  reach(promptTokens: Uint32Array, sequence: Uint32Array): number {
    for (let blocks = fullBlocks(promptTokens.length, this.#blockTokens); blocks >= 0; blocks--) {
      const { lo, hi } = hashBefore(sequence, blocks);
      const tail = this.#tails.get(lo);
      if (tail === undefined || tail.hi !== hi) continue;
      const from = blocks * this.#blockTokens;
      let same = 0;
      while (same < tail.tokens.length && tail.tokens[same] === promptTokens[from + same]) same++;
      if (same > 0) return from + same;
    }
    return 0;
  }
}

function hashBefore(sequence: Uint32Array, blocks: number): { readonly lo: number; readonly hi: number } {
  return blocks === 0 ? START : { lo: sequence[2 * blocks - 2], hi: sequence[2 * blocks - 1] };
}
