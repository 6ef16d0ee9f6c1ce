/**
 * Percentiles interpolate linearly between the two nearest samples, at position `share * (n - 1)` of the sorted sample:
 * the default of numpy and what AIPerf prints, so that numbers can be compared.
 */

// 0.95 * 20 is not always 19 in floating point, and a remainder of 1e-15 must not reach for an infinite neighbour.
const POSITION_PRECISION = 1e9;

/** Where a percentile lies in a sorted sample: between `lower` and the next sample, `fraction` of the way. */
export function percentilePosition(n: number, share: number): { lower: number; fraction: number } {
  const position = Math.round(share * (n - 1) * POSITION_PRECISION) / POSITION_PRECISION;
  const lower = Math.floor(position);
  return { lower, fraction: position - lower };
}

/**
 * A percentile of `sorted` followed by `unreached` samples of +∞; Infinity where it needs one of those, NaN of nothing.
 */
export function percentileOfSorted(sorted: ArrayLike<number>, share: number, unreached = 0): number {
  const n = sorted.length + unreached;
  if (n === 0) return Number.NaN;
  const { lower, fraction } = percentilePosition(n, share);
  const low = lower < sorted.length ? sorted[lower] : Infinity;
  if (fraction === 0 || low === Infinity) return low;
  const high = lower + 1 < sorted.length ? sorted[lower + 1] : Infinity;
  return high === Infinity ? Infinity : low + (high - low) * fraction;
}
