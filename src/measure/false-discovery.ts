/**
 * Which of many findings may be kept so that no more than a share `rate` of the kept ones is expected to be chance
 * (Benjamini and Hochberg 1995). Of hundreds of cells some would be "worse" at 5 % each by accident alone.
 */
export function keptDiscoveries(chances: readonly number[], rate: number): boolean[] {
  const order = Array.from(chances.keys()).sort((a, b) => chances[a] - chances[b]);
  let kept = 0;
  for (const [at, finding] of order.entries()) {
    if (chances[finding] <= (rate * (at + 1)) / chances.length) kept = at + 1;
  }
  const result = chances.map(() => false);
  for (const finding of order.slice(0, kept)) result[finding] = true;
  return result;
}
