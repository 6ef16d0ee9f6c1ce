/**
 * How many neighbours a block bootstrap must draw together, by the rule of Politis and White (2004, corrected 2009) for
 * the circular bootstrap: long enough that what is left of the correlation between blocks does not matter. A fixed rule
 * such as the cube root is far too short near saturation, where one busy period covers hundreds of requests.
 */
export function blockLengthFor(values: ArrayLike<number>): number {
  const n = values.length;
  const longest = Math.max(1, Math.ceil(Math.min(3 * Math.sqrt(n), n / 3)));
  const autocorrelation = autocorrelationOf(values);
  const lag = lastNotableLag(n, autocorrelation, longest);
  if (lag === 0) return 1;
  const bandwidth = Math.min(2 * lag, n - 1);
  let spectrum = 1;
  let slope = 0;
  for (let k = 1; k <= bandwidth; k++) {
    const weight = Math.min(1, 2 * (1 - k / bandwidth)) * autocorrelation(k);
    spectrum += 2 * weight;
    slope += 2 * k * weight;
  }
  const length = Math.cbrt((1.5 * slope * slope * n) / (spectrum * spectrum));
  return Math.min(longest, Math.max(1, Math.ceil(length)));
}

/** The lag after which several correlations in a row are no larger than chance makes them. */
function lastNotableLag(n: number, autocorrelation: (lag: number) => number, longest: number): number {
  const negligible = 2 * Math.sqrt(Math.log10(n) / n);
  const inARow = Math.max(5, Math.ceil(Math.sqrt(Math.log10(n))));
  let quiet = 0;
  for (let lag = 1; lag <= longest + inARow && lag < n; lag++) {
    quiet = Math.abs(autocorrelation(lag)) < negligible ? quiet + 1 : 0;
    if (quiet === inARow) return lag - inARow;
  }
  return longest;
}

function autocorrelationOf(values: ArrayLike<number>): (lag: number) => number {
  const n = values.length;
  let sum = 0;
  for (let i = 0; i < n; i++) sum += values[i];
  const mean = sum / n;
  const covariance = (lag: number): number => {
    let product = 0;
    for (let i = lag; i < n; i++) product += (values[i] - mean) * (values[i - lag] - mean);
    return product;
  };
  const variance = covariance(0);
  return (lag) => (variance === 0 ? 0 : covariance(lag) / variance);
}
