import { bucketLowerNs, bucketOf } from "../duration-histogram.ts";
import { percentilePosition } from "../percentile.ts";

/** Bucket and count in turn, as `GapCounts` has them. */
export type BucketCounts = readonly number[];

/** A latency over a window: null where there is nothing to say it of. */
export interface RollingLatency {
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
  readonly n: number;
}

// All buckets of a `DurationHistogram` fit 16 bits.
const BUCKETS = 2 ** 16;
const FIRST_ROOM = 64;

/**
 * The durations of the last slots. Counts are kept by bucket, and for each slot which buckets it brought, so that what
 * leaves the window can be taken out again: adding costs a few instructions, reading does not depend on how much came.
 */
export class RollingDistribution {
  readonly #counts: Uint32Array = new Uint32Array(BUCKETS);
  readonly #slots: BucketList[];
  #count = 0;

  constructor(slots: number) {
    this.#slots = Array.from({ length: slots }, () => new BucketList());
  }

  get count(): number {
    return this.#count;
  }

  add(slot: number, durationNs: number): void {
    this.addBucket(slot, bucketOf(Math.max(0, durationNs)), 1);
  }

  addBucket(slot: number, bucket: number, count: number): void {
    this.#counts[bucket] += count;
    this.#count += count;
    for (let i = 0; i < count; i++) this.#slots[slot].push(bucket);
  }

  /** Takes a slot's durations out of the window. */
  clear(slot: number): void {
    const list = this.#slots[slot];
    for (let i = 0; i < list.length; i++) this.#counts[list.buckets[i]] -= 1;
    this.#count -= list.length;
    list.clear();
  }

  /** What a slot brought, for another process. */
  bucketCounts(slot: number): BucketCounts {
    const list = this.#slots[slot];
    const sorted = list.buckets.slice(0, list.length).sort();
    const pairs: number[] = [];
    for (const bucket of sorted) {
      if (pairs.at(-2) === bucket) pairs[pairs.length - 1] += 1;
      else pairs.push(bucket, 1);
    }
    return pairs;
  }

  /** Percentiles in units of `unit` nanoseconds, to within 0.05 %. */
  latency(unit: number): RollingLatency {
    const n = this.#count;
    if (n === 0) return { p50: null, p95: null, p99: null, n };
    const [p50, p95, p99] = this.#percentiles([0.5, 0.95, 0.99]).map((valueNs) => valueNs / unit);
    return { p50, p95, p99, n };
  }

  /** Percentiles of ascending shares in one walk over the buckets. */
  #percentiles(shares: readonly number[]): number[] {
    const ranks = shares.map((share) => percentilePosition(this.#count, share));
    const wanted = ranks.flatMap(({ lower, fraction }) => (fraction === 0 ? [lower] : [lower, lower + 1]));
    const values = new Map<number, number>();
    let below = 0;
    let next = 0;
    const order = [...new Set(wanted)].sort((a, b) => a - b);
    for (let bucket = 0; next < order.length; bucket++) {
      below += this.#counts[bucket];
      while (next < order.length && order[next] < below) values.set(order[next++], middleNs(bucket));
    }
    return ranks.map(({ lower, fraction }) => {
      const low = values.get(lower) ?? 0;
      return fraction === 0 ? low : low + ((values.get(lower + 1) ?? low) - low) * fraction;
    });
  }
}

/** The middle of a bucket, which stands for all of it. */
export function middleNs(bucket: number): number {
  const lowerNs = bucketLowerNs(bucket);
  return lowerNs + (bucketLowerNs(bucket + 1) - 1 - lowerNs) / 2;
}

/** Buckets in the order they came; memory stays at the most a slot ever held. */
class BucketList {
  buckets: Uint16Array = new Uint16Array(FIRST_ROOM);
  length = 0;

  push(bucket: number): void {
    if (this.length === this.buckets.length) {
      const larger = new Uint16Array(2 * this.length);
      larger.set(this.buckets);
      this.buckets = larger;
    }
    this.buckets[this.length++] = bucket;
  }

  clear(): void {
    this.length = 0;
  }
}
