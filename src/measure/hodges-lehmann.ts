/**
 * The Hodges–Lehmann estimate of a shift: the median of the means of all pairs of values, each paired with itself too.
 * As robust as a median and nearly as precise as a mean. There are n(n + 1)/2 pairs, so they are not listed: the value
 * is bisected, counting the pairs below a guess in linear time. `sorted` must ascend and be finite; NaN of nothing.
 */
export function hodgesLehmann(sorted: Float64Array): number {
  const n = sorted.length;
  if (n === 0) return Number.NaN;
  const pairs = (n * (n + 1)) / 2;
  const lowRank = Math.floor((pairs - 1) / 2);
  const highRank = Math.floor(pairs / 2);
  const low = pairMean(sorted, lowRank);
  return lowRank === highRank ? low : (low + pairMean(sorted, highRank)) / 2;
}

/** The pair mean with `rank` smaller ones, by bisection until two doubles are neighbours. */
function pairMean(sorted: Float64Array, rank: number): number {
  let low = sorted[0];
  let high = sorted[sorted.length - 1];
  if (pairsAtMost(sorted, low) > rank) return low;
  for (;;) {
    const guess = low + (high - low) / 2;
    if (guess <= low || guess >= high) return high;
    if (pairsAtMost(sorted, guess) > rank) high = guess;
    else low = guess;
  }
}

function pairsAtMost(sorted: Float64Array, mean: number): number {
  let count = 0;
  let j = sorted.length - 1;
  // As i grows, the largest partner j that stays at or below the mean can only fall.
  for (let i = 0; i < sorted.length; i++) {
    while (j >= i && (sorted[i] + sorted[j]) / 2 > mean) j -= 1;
    if (j < i) break;
    count += j - i + 1;
  }
  return count;
}
