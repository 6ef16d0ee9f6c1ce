/**
 * A quantile with linear interpolation between the two nearest values, as numpy's default: the published lengths of the
 * public traces are by this rule. NaN of nothing.
 */
export function quantile(values: readonly number[], share: number): number {
  return quantileOfSorted(Float64Array.from(values).sort(), share);
}

/** The same of values in ascending order. */
export function quantileOfSorted(sorted: ArrayLike<number>, share: number): number {
  const at = share * (sorted.length - 1);
  const low = Math.floor(at);
  const high = Math.ceil(at);
  if (sorted.length === 0) return NaN;
  return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}
