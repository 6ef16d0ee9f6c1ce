import type { Rng } from "../core/rng.ts";
import { blockLengthFor } from "./block-length.ts";

export interface BootstrapOptions {
  /** Coverage; 0.95 unless told. */
  readonly level?: number;
  readonly resamples?: number;
  /** Consecutive values drawn together; by how far they depend on each other unless told. */
  readonly blockLength?: number;
}

/** An interval that may be open-ended: -Infinity and Infinity are values of `low` and `high`. */
export interface Interval {
  readonly low: number;
  readonly high: number;
  readonly level: number;
  readonly resamples: number;
  readonly blockLength: number;
}

const DEFAULT_LEVEL = 0.95;
const DEFAULT_RESAMPLES = 1000;

/**
 * A percentile bootstrap interval of the mean or median of `values`, given in order of arrival. Requests that arrive
 * one after the other share queues and are not independent, so whole blocks of neighbours are drawn (circular block
 * bootstrap): drawing single requests would give intervals that are far too narrow near saturation. Null of nothing.
 */
export function bootstrapInterval(
  values: ArrayLike<number>,
  statistic: "mean" | "median",
  rng: Rng,
  options: BootstrapOptions = {},
): Interval | null {
  const n = values.length;
  if (n === 0) return null;
  const { level = DEFAULT_LEVEL, resamples = DEFAULT_RESAMPLES } = options;
  const order = Uint32Array.from({ length: n }, (_, i) => i).sort((a, b) => compare(values[a], values[b]));
  const ranks = ranksOf(values, order);
  // Ranks, since values may be infinite.
  const blockLength = Math.min(n, options.blockLength ?? blockLengthFor(ranks));
  const resample = statistic === "mean" ? meanResampler(values) : medianResampler(values, order);
  const estimates = new Float64Array(resamples);
  const starts = new Uint32Array(Math.ceil(n / blockLength));
  for (let i = 0; i < resamples; i++) {
    for (let block = 0; block < starts.length; block++) starts[block] = rng.below(n);
    estimates[i] = resample(starts, blockLength);
  }
  estimates.sort();
  // Rounded outwards, and never interpolated: an end may be infinite.
  const tail = ((1 - level) / 2) * (resamples - 1);
  const low = estimates[Math.floor(tail)];
  const high = estimates[Math.ceil(resamples - 1 - tail)];
  return { low, high, level, resamples, blockLength };
}

type Resampler = (starts: Uint32Array, blockLength: number) => number;

function meanResampler(values: ArrayLike<number>): Resampler {
  const n = values.length;
  return (starts, blockLength) => {
    let sum = 0;
    forEachDrawn(n, starts, blockLength, (index) => {
      sum += values[index];
    });
    return sum / n;
  };
}

/** Ranks of values, equal for equal ones. */
function ranksOf(values: ArrayLike<number>, order: Uint32Array): Float64Array {
  const ranks = new Float64Array(values.length);
  for (let from = 0, to = 0; from < order.length; from = to) {
    while (to < order.length && values[order[to]] === values[order[from]]) to += 1;
    for (let i = from; i < to; i++) ranks[order[i]] = (from + to - 1) / 2;
  }
  return ranks;
}

function medianResampler(values: ArrayLike<number>, order: Uint32Array): Resampler {
  const n = values.length;
  const sorted = Float64Array.from(order, (index) => values[index]);
  const rankOf = new Uint32Array(n);
  for (let rank = 0; rank < n; rank++) rankOf[order[rank]] = rank;
  // Counting ranks instead of sorting each resample makes it linear.
  const drawn = new Uint32Array(n);
  return (starts, blockLength) => {
    drawn.fill(0);
    forEachDrawn(n, starts, blockLength, (index) => {
      drawn[rankOf[index]] += 1;
    });
    return middle(valueAtRank(sorted, drawn, (n - 1) >> 1), valueAtRank(sorted, drawn, n >> 1));
  };
}

function forEachDrawn(n: number, starts: Uint32Array, blockLength: number, take: (index: number) => void): void {
  let left = n;
  for (let block = 0; left > 0; block++) {
    const length = Math.min(left, blockLength);
    let index = starts[block];
    for (let i = 0; i < length; i++) {
      take(index);
      index += 1;
      if (index === n) index = 0;
    }
    left -= length;
  }
}

function valueAtRank(sorted: Float64Array, drawn: Uint32Array, rank: number): number {
  let seen = 0;
  for (let i = 0; i < drawn.length; i++) {
    seen += drawn[i];
    if (seen > rank) return sorted[i];
  }
  return Number.NaN;
}

/** The median of sorted values, which may begin with -∞ and end with +∞; NaN of nothing. */
export function medianOfSorted(sorted: ArrayLike<number>): number {
  const n = sorted.length;
  return n === 0 ? Number.NaN : middle(sorted[(n - 1) >> 1], sorted[n >> 1]);
}

/** Half of the pairs on either side of everything shows nothing, so -∞ and +∞ meet at 0. */
function middle(low: number, high: number): number {
  if (low === high) return low;
  return low === -Infinity && high === Infinity ? 0 : (low + high) / 2;
}

function compare(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
