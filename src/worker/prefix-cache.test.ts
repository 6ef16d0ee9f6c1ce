import { describe, expect, test } from "vitest";
import { sequenceHashes } from "../core/hash.ts";
import { KvIndex } from "../core/kv-index/kv-index.ts";
import type { KvEventBody } from "../core/kv-index/types.ts";
import { Rng } from "../core/rng.ts";
import { PrefixCache } from "./prefix-cache.ts";

/** A prompt of blocks that are named by numbers. */
function prompt(...blocks: number[]): Uint32Array {
  return sequenceHashes(Uint32Array.from(blocks), 1);
}

function watched(kvBlocks: number): { cache: PrefixCache; events: KvEventBody[] } {
  const events: KvEventBody[] = [];
  return { cache: new PrefixCache(kvBlocks, (event) => events.push(event)), events };
}

describe("the prefix cache", () => {
  test("finds the leading blocks of a prompt that an earlier one left", () => {
    const { cache, events } = watched(8);
    const first = prompt(1, 2, 3);
    expect(cache.acquire(first, 3)).toBe(0);
    expect(cache.extend(first, 0, 3)).toBe(3);
    cache.release(first, 3);
    expect(cache.acquire(prompt(1, 2, 9), 3)).toBe(2);
    expect(events).toEqual([{ kind: "stored", parent: null, engine: first, local: null }]);
  });

  test("names the block before the first new one as parent", () => {
    const { cache, events } = watched(8);
    const all = prompt(1, 2, 3);
    cache.extend(all, 0, 1);
    cache.extend(all, 1, 3);
    expect(events[1]).toEqual({ kind: "stored", parent: all.slice(0, 2), engine: all.slice(2), local: null });
  });

  test("forgets what was used longest ago, the end of a prompt before its beginning, and says so first", () => {
    const { cache, events } = watched(4);
    const [old, newer] = [prompt(1, 2), prompt(3, 4)];
    for (const sequence of [old, newer]) cache.release(sequence, cache.extend(sequence, 0, 2));
    cache.extend(prompt(5), 0, 1);
    expect(events.slice(2).map(({ kind }) => kind)).toEqual(["removed", "stored"]);
    expect(events[2]).toEqual({ kind: "removed", engine: old.slice(2) });
    expect(cache.acquire(old, 2)).toBe(1);
  });

  test("keeps what running jobs use, and caches no more than fits", () => {
    const { cache, events } = watched(3);
    cache.extend(prompt(1, 2), 0, 2);
    expect(cache.extend(prompt(5, 6, 7), 0, 3)).toBe(1);
    expect(cache.size).toBe(3);
    expect(events.some(({ kind }) => kind === "removed")).toBe(false);
  });

  test("its events and its snapshot tell an index exactly what it holds", () => {
    const rng = new Rng(3);
    const fed = new KvIndex({ maxReplicas: 1, maxBlocks: 4096 });
    const restored = new KvIndex({ maxReplicas: 1, maxBlocks: 4096 });
    const cache = new PrefixCache(40, (event) => fed.apply(0, "device", event));
    const running: { sequence: Uint32Array; held: number }[] = [];
    for (let step = 0; step < 2000; step++) {
      if (running.length > 3) {
        const [{ sequence, held }] = running.splice(rng.below(running.length), 1);
        cache.release(sequence, held);
      }
      const sequence = prompt(...Array.from({ length: 1 + rng.below(8) }, (_, i) => 10 * i + rng.below(2)));
      const blocks = sequence.length / 2;
      expect(fed.match(sequence, blocks).confirmed[0]).toBe(heldBy(cache, sequence));
      const cached = cache.acquire(sequence, blocks);
      running.push({ sequence, held: cache.extend(sequence, cached, blocks) });
      if (step % 100 !== 0) continue;
      restored.restore(0, cache.snapshot());
      expect(restored.match(sequence, blocks).confirmed[0]).toBe(fed.match(sequence, blocks).confirmed[0]);
      expect(restored.stats().blocks).toBe(cache.size);
    }
    expect(fed.stats()).toMatchObject({ blocks: cache.size, unknownRemovals: 0, refusedBlocks: 0 });
  });
});

function heldBy(cache: PrefixCache, sequence: Uint32Array): number {
  const held = cache.acquire(sequence, sequence.length / 2);
  cache.release(sequence, held);
  return held;
}
