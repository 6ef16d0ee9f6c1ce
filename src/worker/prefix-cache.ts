import { hashText } from "../core/hash.ts";
import type { KvEventBody, SnapshotRun } from "../core/kv-index/types.ts";

interface Block {
  readonly lo: number;
  readonly hi: number;
  readonly parent: string | undefined;
  /** Jobs that are using the block; it can be forgotten at 0. */
  pins: number;
}

/**
 * Blocks of prompts and answers by sequence hash. What running jobs use is pinned; the rest is forgotten least recently used
 * first, the end of a prompt before its beginning. Every change is told as a KV event.
 */
export class PrefixCache {
  readonly #kvBlocks: number;
  readonly #publish: (event: KvEventBody) => void;
  readonly #blocks = new Map<string, Block>();
  /** Blocks without pins, in the order in which they are to be forgotten. */
  readonly #idle = new Map<string, Block>();

  constructor(kvBlocks: number, publish: (event: KvEventBody) => void) {
    this.#kvBlocks = kvBlocks;
    this.#publish = publish;
  }

  get size(): number {
    return this.#blocks.size;
  }

  /** Pins what is cached of a prompt and returns how many leading blocks that is. */
  acquire(sequence: Uint32Array, blocks: number): number {
    let held = 0;
    for (; held < blocks; held++) {
      const key = keyAt(sequence, held);
      const block = this.#blocks.get(key);
      if (block === undefined) break;
      this.#pin(key, block);
    }
    return held;
  }

  /** Caches and pins the blocks after the first `held`, up to `blocks`, and returns how many are held then. */
  extend(sequence: Uint32Array, held: number, blocks: number): number {
    const removed: number[] = [];
    let runStart = held;
    let at = held;
    const runs: { readonly from: number; readonly to: number }[] = [];
    for (; at < blocks; at++) {
      const key = keyAt(sequence, at);
      const present = this.#blocks.get(key);
      if (present !== undefined) {
        if (at > runStart) runs.push({ from: runStart, to: at });
        runStart = at + 1;
        this.#pin(key, present);
        continue;
      }
      if (this.#blocks.size >= this.#kvBlocks && !this.#forgetOldest(removed)) break;
      const parent = at === 0 ? undefined : keyAt(sequence, at - 1);
      this.#blocks.set(key, { lo: sequence[2 * at], hi: sequence[2 * at + 1], parent, pins: 1 });
    }
    if (at > runStart) runs.push({ from: runStart, to: at });
    if (removed.length > 0) this.#publish({ kind: "removed", engine: Uint32Array.from(removed) });
    for (const { from, to } of runs) {
      const parent = from === 0 ? null : sequence.slice(2 * from - 2, 2 * from);
      this.#publish({ kind: "stored", parent, engine: sequence.slice(2 * from, 2 * to), local: null });
    }
    return at;
  }

  /** Unpins the first `held` blocks of a prompt. */
  release(sequence: Uint32Array, held: number): void {
    for (let at = held - 1; at >= 0; at--) {
      const key = keyAt(sequence, at);
      const block = this.#blocks.get(key);
      if (block === undefined) continue;
      block.pins--;
      if (block.pins === 0) this.#idle.set(key, block);
    }
  }

  /** All blocks, in runs that follow one another in a prompt. */
  snapshot(): SnapshotRun[] {
    const firstChild = new Map<string, string>();
    const heads: string[] = [];
    for (const [key, { parent }] of this.#blocks) {
      const isFollower = parent !== undefined && this.#blocks.has(parent) && !firstChild.has(parent);
      if (isFollower) firstChild.set(parent, key);
      else heads.push(key);
    }
    return heads.map((head) => {
      const lanes: number[] = [];
      for (let key: string | undefined = head; key !== undefined; key = firstChild.get(key)) {
        const block = this.#blocks.get(key);
        if (block !== undefined) lanes.push(block.lo, block.hi);
      }
      return { tier: "device", sequence: Uint32Array.from(lanes), engine: null };
    });
  }

  #pin(key: string, block: Block): void {
    if (block.pins === 0) this.#idle.delete(key);
    block.pins++;
  }

  #forgetOldest(removed: number[]): boolean {
    for (const [key, block] of this.#idle) {
      this.#idle.delete(key);
      this.#blocks.delete(key);
      removed.push(block.lo, block.hi);
      return true;
    }
    return false;
  }
}

function keyAt(sequence: Uint32Array, block: number): string {
  return hashText(sequence[2 * block], sequence[2 * block + 1]);
}
