/**
 * Bounds of latency histograms: 1 ms to 600 s in steps of about 1.5, wide enough that a saturated arm of a comparison is still
 * inside them.
 */
export const LATENCY_BOUNDS_SECONDS: readonly number[] = [
  0.001, 0.0015, 0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5,
  2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 450, 600,
];

/** Bounds for what the gateway itself does: 10 µs to 1 s. */
export const STAGE_BOUNDS_SECONDS: readonly number[] = [
  0.000_01, 0.000_02, 0.000_05, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1,
];

/** The first bucket whose bound a value does not exceed; the number of bounds if it exceeds all of them. */
export function bucketOf(bounds: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = bounds.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (bounds[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
