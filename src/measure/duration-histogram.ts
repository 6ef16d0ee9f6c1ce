import { NS_PER_SECOND } from "../core/clock.ts";
import type { GapCounts } from "../core/request-record.ts";
import { percentilePosition } from "./percentile.ts";
import { type LatencySummary, shareOf, summarise } from "./summary.ts";

// 1,024 buckets per power of two: a bucket is at most 1/1024 of its values wide, its middle at most 0.05 % off.
const BUCKET_BITS = 10;
const BUCKETS_PER_OCTAVE = 2 ** BUCKET_BITS;
const PS_PER_NS = 1000;
// Up to 2^53 ns, the largest exact time.
const BUCKETS = (53 - BUCKET_BITS) * BUCKETS_PER_OCTAVE + 2 * BUCKETS_PER_OCTAVE;

// Much faster than `**`, which is a call into the maths library.
const POWERS_OF_TWO = Float64Array.from({ length: 54 }, (_, exponent) => 2 ** exponent);

/** The largest relative error of a percentile of a histogram, away from values below 2 µs, which are exact. */
export const HISTOGRAM_RELATIVE_ERROR: number = 1 / (2 * BUCKETS_PER_OCTAVE);

/** The bucket of a duration; fractions of a nanosecond are cut off. */
export function bucketOf(durationNs: number): number {
  if (durationNs < 2 * BUCKETS_PER_OCTAVE) return durationNs | 0;
  let shift = 0;
  let high = durationNs;
  // clz32 sees 32 bits; what lies above is brought down by a power of two, which is exact.
  if (high >= 4294967296) {
    shift = 21;
    high /= 2097152;
  }
  const drop = 31 - BUCKET_BITS - Math.clz32(high);
  return (shift + drop) * BUCKETS_PER_OCTAVE + (high >>> drop);
}

/** The smallest duration of a bucket. */
export function bucketLowerNs(bucket: number): number {
  if (bucket < 2 * BUCKETS_PER_OCTAVE) return bucket;
  const drop = (bucket >>> BUCKET_BITS) - 1;
  return (bucket - drop * BUCKETS_PER_OCTAVE) * POWERS_OF_TWO[drop];
}

/**
 * Counts of durations in logarithmic buckets, for the millions of gaps between tokens. Count, mean, minimum and maximum
 * are exact, percentiles to within 0.05 %. Counts are integers, so merging is exact in any order.
 */
export class DurationHistogram {
  readonly #counts: Float64Array = new Float64Array(BUCKETS);
  #count = 0;
  // Seconds and nanoseconds apart: a million long streams together last longer than 2^53 ns.
  #sumSeconds = 0;
  #sumNs = 0;
  #minNs = Infinity;
  #maxNs = 0;

  get count(): number {
    return this.#count;
  }

  add(durationNs: number): void {
    this.#counts[bucketOf(durationNs)] += 1;
    this.#count += 1;
    this.addSum(durationNs);
    if (durationNs < this.#minNs) this.#minNs = durationNs;
    if (durationNs > this.#maxNs) this.#maxNs = durationNs;
  }

  /** Adds the difference between each two consecutive times. */
  addDifferences(timesNs: Float64Array): void {
    if (timesNs.length < 2) return;
    const counts = this.#counts;
    let minNs = this.#minNs;
    let maxNs = this.#maxNs;
    let previousNs = timesNs[0];
    for (let i = 1; i < timesNs.length; i++) {
      const gapNs = timesNs[i] - previousNs;
      previousNs = timesNs[i];
      counts[bucketOf(gapNs)] += 1;
      if (gapNs < minNs) minNs = gapNs;
      if (gapNs > maxNs) maxNs = gapNs;
    }
    this.#minNs = minNs;
    this.#maxNs = maxNs;
    this.#count += timesNs.length - 1;
    this.addSum(previousNs - timesNs[0]);
  }

  /**
   * Adds `count` durations that grow by `growthPs` from `firstPs` on, in time that depends on the buckets they span and
   * not on their number. Picoseconds, as engine steps have them, keep all of it in integers: one run or many that make
   * it up count alike. The caller owes their sum to `addSum`: it depends on how they fall on whole nanoseconds.
   */
  addProgression(firstPs: number, growthPs: number, count: number): void {
    if (count === 1) {
      // Most runs of a busy engine are single steps, each with prompts of its own.
      const durationNs = firstPs / PS_PER_NS;
      this.#counts[bucketOf(durationNs)] += 1;
      this.#count += 1;
      if (durationNs < this.#minNs) this.#minNs = durationNs;
      if (durationNs > this.#maxNs) this.#maxNs = durationNs;
      return;
    }
    const lastPs = firstPs + growthPs * (count - 1);
    let lowPs = growthPs < 0 ? lastPs : firstPs;
    const lowNs = lowPs / PS_PER_NS;
    const highNs = (growthPs < 0 ? firstPs : lastPs) / PS_PER_NS;
    if (lowNs < this.#minNs) this.#minNs = lowNs;
    if (highNs > this.#maxNs) this.#maxNs = highNs;
    this.#count += count;
    const highBucket = bucketOf(highNs);
    let bucket = bucketOf(lowNs);
    let left = count;
    const stepPs = Math.abs(growthPs);
    while (bucket < highBucket) {
      const here = Math.ceil((bucketLowerNs(bucket + 1) * PS_PER_NS - lowPs) / stepPs);
      this.#counts[bucket] += here;
      left -= here;
      lowPs += here * stepPs;
      bucket = bucketOf(lowPs / PS_PER_NS);
    }
    this.#counts[bucket] += left;
  }

  /** Adds the gaps of one request as a file keeps them. */
  addGapCounts(gaps: GapCounts): void {
    const pairs = gaps.bucketCounts;
    if (pairs.length === 0) return;
    for (let i = 0; i < pairs.length; i += 2) {
      this.#counts[pairs[i]] += pairs[i + 1];
      this.#count += pairs[i + 1];
    }
    this.addSum(gaps.sumNs);
    if (gaps.minNs < this.#minNs) this.#minNs = gaps.minNs;
    if (gaps.maxNs > this.#maxNs) this.#maxNs = gaps.maxNs;
  }

  merge(other: DurationHistogram): void {
    if (other.#count === 0) return;
    const from = bucketOf(other.#minNs);
    const to = bucketOf(other.#maxNs);
    for (let bucket = from; bucket <= to; bucket++) this.#counts[bucket] += other.#counts[bucket];
    this.#count += other.#count;
    this.#sumSeconds += other.#sumSeconds;
    this.addSum(other.#sumNs);
    this.#minNs = Math.min(this.#minNs, other.#minNs);
    this.#maxNs = Math.max(this.#maxNs, other.#maxNs);
  }

  /** The filled buckets, for files and for other processes. */
  toGapCounts(): GapCounts {
    const bucketCounts: number[] = [];
    const minNs = this.#count === 0 ? 0 : this.#minNs;
    const to = this.#count === 0 ? -1 : bucketOf(this.#maxNs);
    for (let bucket = bucketOf(minNs); bucket <= to; bucket++) {
      if (this.#counts[bucket] > 0) bucketCounts.push(bucket, this.#counts[bucket]);
    }
    return { bucketCounts, sumNs: this.#sumSeconds * NS_PER_SECOND + this.#sumNs, minNs, maxNs: this.#maxNs };
  }

  /** Empties it, at the price of the buckets that were in use. */
  clear(): void {
    if (this.#count > 0) this.#counts.fill(0, bucketOf(this.#minNs), bucketOf(this.#maxNs) + 1);
    this.#count = 0;
    this.#sumSeconds = 0;
    this.#sumNs = 0;
    this.#minNs = Infinity;
    this.#maxNs = 0;
  }

  /** NaN of nothing. */
  meanNs(): number {
    return (this.#sumSeconds / this.#count) * NS_PER_SECOND + this.#sumNs / this.#count;
  }

  /** A percentile of the durations followed by `unreached` of +∞. */
  percentileNs(share: number, unreached = 0): number {
    const { lower, fraction } = percentilePosition(this.#count + unreached, share);
    const low = this.#valueAt(lower);
    if (fraction === 0 || low === Infinity) return low;
    const high = this.#valueAt(lower + 1);
    return high === Infinity ? Infinity : low + (high - low) * fraction;
  }

  /** The summary over the durations and `unreached` of +∞, in units of `unit` nanoseconds. */
  summary(unit: number, unreached = 0): LatencySummary {
    return summarise(this.#count + unreached, (name) => {
      if (name !== "mean") return this.percentileNs(shareOf(name), unreached) / unit;
      return unreached > 0 ? Infinity : this.meanNs() / unit;
    });
  }

  #valueAt(rank: number): number {
    if (rank >= this.#count) return Infinity;
    if (rank === 0) return this.#minNs;
    if (rank === this.#count - 1) return this.#maxNs;
    let below = 0;
    let bucket = bucketOf(this.#minNs);
    for (; below + this.#counts[bucket] <= rank; bucket++) below += this.#counts[bucket];
    const lowerNs = bucketLowerNs(bucket);
    const middleNs = lowerNs + (bucketLowerNs(bucket + 1) - 1 - lowerNs) / 2;
    return Math.min(this.#maxNs, Math.max(this.#minNs, middleNs));
  }

  /** Adds to the sum of the durations alone. */
  addSum(ns: number): void {
    const total = this.#sumNs + ns;
    const seconds = Math.floor(total / NS_PER_SECOND);
    this.#sumSeconds += seconds;
    this.#sumNs = total - seconds * NS_PER_SECOND;
  }
}
