import type { Rng } from "../core/rng.ts";

/** The least and the most of something, both included. */
export type Range = readonly [least: number, most: number];

/** A whole number between the ends of a range, each as likely as the other. */
export function drawBetween(rng: Rng, [least, most]: Range): number {
  return least + rng.below(most - least + 1);
}

/**
 * Whole numbers spread evenly over a range, in a random order. For few shared things: were each drawn by itself, the
 * whole workload would be longer or shorter by seed.
 */
export function spreadOver(rng: Rng, count: number, [least, most]: Range): number[] {
  const values = Array.from({ length: count }, (_, at) => Math.round(least + ((at + 0.5) / count) * (most - least)));
  for (let at = count - 1; at > 0; at--) {
    const other = rng.below(at + 1);
    [values[at], values[other]] = [values[other], values[at]];
  }
  return values;
}

/** A number of the standard normal distribution. */
function drawNormal(rng: Rng): number {
  return Math.sqrt(-2 * Math.log(rng.uniform())) * Math.cos(2 * Math.PI * rng.uniform());
}

/** A number of the gamma distribution with mean `shape` (Marsaglia and Tsang 2000). */
export function drawGamma(rng: Rng, shape: number): number {
  // Below 1 the method does not hold; a gamma of shape + 1 times a power of a uniform has the right distribution.
  if (shape < 1) return drawGamma(rng, shape + 1) * rng.uniform() ** (1 / shape);
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const normal = drawNormal(rng);
    const cube = (1 + c * normal) ** 3;
    if (cube > 0 && Math.log(rng.uniform()) < 0.5 * normal * normal + d - d * cube + d * Math.log(cube)) {
      return d * cube;
    }
  }
}

/** A token count around a mean with a coefficient of variation, gamma distributed, at least 1 and at most `most`. */
export function drawTokens(rng: Rng, mean: number, variation: number, most: number): number {
  if (variation === 0) return Math.min(Math.round(mean), most);
  const shape = 1 / (variation * variation);
  return Math.min(Math.max(1, Math.round((drawGamma(rng, shape) * mean) / shape)), most);
}

/** Chooses among ranks by Zipf's law: rank r with weight 1 / (r + 1) ** skew; skew 0 is uniform. */
export class ZipfChoice {
  readonly #cumulative: Float64Array;

  constructor(choices: number, skew: number) {
    this.#cumulative = new Float64Array(choices);
    let total = 0;
    for (let rank = 0; rank < choices; rank++) {
      total += (rank + 1) ** -skew;
      this.#cumulative[rank] = total;
    }
  }

  draw(rng: Rng): number {
    const cumulative = this.#cumulative;
    const aim = rng.uniform() * cumulative[cumulative.length - 1];
    let low = 0;
    let high = cumulative.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (cumulative[middle] < aim) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
