import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chainHashes, hashText, ROOT_HI, ROOT_LO } from "../../core/hash.ts";
import type { CacheListener } from "./block-cache.ts";
import { RunCache, type RunHolding } from "./run-cache.ts";

function sequenceOf(contents: readonly number[]): Uint32Array {
  const local = Uint32Array.from(contents.flatMap((content) => [content + 1, (content + 1) * 7]));
  chainHashes(local, contents.length, ROOT_LO, ROOT_HI, local);
  return local;
}

/** Hears of every copy, and knows which cached blocks others continue. */
class Leaves implements CacheListener {
  readonly #copies = new Map<string, number>();
  readonly #continuations = new Map<string, number>();
  evicted = 0;
  /** Blocks of which the last copy was given up although cached blocks continued it. */
  orphaning = 0;

  stored(sequence: Uint32Array, from: number, to: number): void {
    for (let at = from; at < to; at++) this.#count(sequence, at, 1);
  }

  removed(sequence: Uint32Array, from: number, to: number): void {
    for (let at = to - 1; at >= from; at--) {
      const key = keyAt(sequence, at);
      const isLastCopy = this.#copies.get(key) === 1;
      if (isLastCopy && (this.#continuations.get(key) ?? 0) > 0) this.orphaning += 1;
      this.#count(sequence, at, -1);
      this.evicted += 1;
    }
  }

  #count(sequence: Uint32Array, at: number, by: 1 | -1): void {
    const key = keyAt(sequence, at);
    this.#copies.set(key, (this.#copies.get(key) ?? 0) + by);
    if (at === 0) return;
    const parent = keyAt(sequence, at - 1);
    this.#continuations.set(parent, (this.#continuations.get(parent) ?? 0) + by);
  }
}

function keyAt(sequence: Uint32Array, at: number): string {
  return hashText(sequence[2 * at], sequence[2 * at + 1]);
}

const requestArbitrary = fc.record({
  // Few contents make prefixes collide, nest and part.
  contents: fc.array(fc.nat({ max: 1 }), { minLength: 1, maxLength: 8, size: "max" }),
  // Who uses fewer hits than there are computes copies of its own.
  mostHits: fc.oneof(fc.constant(8), fc.nat({ max: 8 })),
  /** Requests that are still under way when this one comes. */
  underWay: fc.nat({ max: 4 }),
  isFirstReleased: fc.boolean(),
});

describe("what is given up when blocks run out", () => {
  // Why no profile has a switch between `freeListLru` (vLLM) and `leafLru` (TensorRT-LLM, SGLang): whoever holds a block
  // holds a copy of each block before it and gives those back later, so the block released first is a leaf at any time.
  it("is the block released first (freeListLru), which no cached block ever continues (leafLru)", () => {
    let evicted = 0;
    fc.assert(
      fc.property(
        fc.integer({ min: 8, max: 24 }),
        fc.array(requestArbitrary, { maxLength: 60, size: "max" }),
        (pool, requests) => {
          const leaves = new Leaves();
          const cache = new RunCache({ poolBlocks: pool, duplicates: "perCopyEvents" }, leaves);
          const held: RunHolding[] = [];
          for (const { contents, mostHits, underWay, isFirstReleased } of requests) {
            while (held.length > underWay) {
              const [released] = isFirstReleased ? held.splice(0, 1) : held.splice(-1, 1);
              cache.release(released);
            }
            const sequence = sequenceOf(contents);
            const { blocks, unreferenced } = cache.match(sequence, Math.min(mostHits, contents.length));
            if (contents.length - blocks + unreferenced > cache.available) continue;
            const holding = cache.hold(sequence, blocks);
            cache.allocate(holding, contents.length - blocks);
            cache.publish(holding, sequence, contents.length);
            held.push(holding);
          }
          expect(leaves.orphaning).toBe(0);
          evicted += leaves.evicted;
        },
      ),
      { numRuns: 300 },
    );
    expect(evicted).toBeGreaterThan(2000);
  });
});
