/**
 * Kendall's tau-a of a series against its order: rising pairs minus falling pairs over all pairs; 0 of fewer than two.
 */
export function kendallTau(series: readonly number[]): number {
  let balance = 0;
  for (let i = 0; i < series.length; i++) {
    for (let j = i + 1; j < series.length; j++) {
      if (series[j] > series[i]) balance += 1;
      else if (series[j] < series[i]) balance -= 1;
    }
  }
  const pairs = (series.length * (series.length - 1)) / 2;
  return pairs === 0 ? 0 : balance / pairs;
}

/** The least-squares slope of a series per step; 0 of fewer than two. */
export function leastSquaresSlope(series: readonly number[]): number {
  const middle = (series.length - 1) / 2;
  let product = 0;
  let square = 0;
  for (let i = 0; i < series.length; i++) {
    product += (i - middle) * series[i];
    square += (i - middle) ** 2;
  }
  return square === 0 ? 0 : product / square;
}
