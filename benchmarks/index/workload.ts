import type { KvEventBody } from "../../src/core/kv-index/types.ts";
import { hashText } from "../../src/core/hash.ts";
import { mixPair } from "../../src/core/rng.ts";
import { chained, rowLocalHashes, type TraceRow } from "../trace.ts";

export interface Step {
  readonly replica: number;
  readonly sequence: Uint32Array;
  /** In the order an engine emits them: what had to go, then what was stored. */
  readonly events: readonly KvEventBody[];
}

export interface IndexWorkload {
  readonly steps: readonly Step[];
  /** Blocks stored plus blocks removed. */
  readonly writes: number;
  /** Most (replica, block) pairs held at once. */
  readonly peakHeld: number;
}

/**
 * Replays a trace round-robin through one LRU cache per worker, as engines keep them: a prompt's last blocks are forgotten
 * first, and one request makes at most one removed and one stored event. With `opaque`, events carry engine hashes that
 * mean nothing outside their worker, and local hashes.
 */
export function indexWorkload(
  rows: readonly TraceRow[],
  options: { workers: number; cacheBlocks: number; blockTokens: number; opaque: boolean },
): IndexWorkload {
  const caches = Array.from({ length: options.workers }, () => new Map<string, number>());
  const steps: Step[] = [];
  let writes = 0;
  let held = 0;
  let peakHeld = 0;
  rows.forEach((row, index) => {
    const replica = index % options.workers;
    const cache = caches[replica];
    const local = rowLocalHashes(row, options.blockTokens).slice(0, 2 * options.cacheBlocks);
    const sequence = chained(local);
    const blocks = sequence.length / 2;
    const keys = Array.from({ length: blocks }, (_, i) => hashText(sequence[2 * i], sequence[2 * i + 1]));
    let hit = 0;
    while (hit < blocks && cache.has(keys[hit])) hit++;
    for (let i = blocks - 1; i >= 0; i--) {
      cache.delete(keys[i]);
      cache.set(keys[i], 0);
    }
    const removed: number[] = [];
    for (const key of cache.keys()) {
      if (cache.size <= options.cacheBlocks) break;
      cache.delete(key);
      removed.push(Number.parseInt(key.slice(8), 16), Number.parseInt(key.slice(0, 8), 16));
    }
    const events: KvEventBody[] = [];
    const engine = (hashes: Uint32Array): Uint32Array => (options.opaque ? engineHashes(hashes, replica) : hashes);
    if (removed.length > 0) events.push({ kind: "removed", engine: engine(Uint32Array.from(removed)) });
    if (hit < blocks) {
      events.push({
        kind: "stored",
        parent: hit === 0 ? null : engine(sequence.slice(2 * hit - 2, 2 * hit)),
        engine: engine(sequence.slice(2 * hit)),
        local: options.opaque ? local.slice(2 * hit) : null,
      });
    }
    writes += removed.length / 2 + (blocks - hit);
    held += blocks - hit - removed.length / 2;
    peakHeld = Math.max(peakHeld, held);
    steps.push({ replica, sequence, events });
  });
  return { steps, writes, peakHeld };
}

function engineHashes(hashes: Uint32Array, replica: number): Uint32Array {
  return hashes.map((lane, i) => mixPair(lane ^ Math.imul(replica + 1, 0x9e3779b1), i & 1));
}
