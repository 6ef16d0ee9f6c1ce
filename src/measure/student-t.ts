/**
 * Student's t distribution, for means over few repetitions: the chance of a value above `t`, and the value that a chance
 * belongs to. By the regularised incomplete beta function, as a continued fraction (Lentz).
 */

/** The chance that a t variable with so many degrees of freedom is above `t`. */
export function studentTail(t: number, degrees: number): number {
  if (t === Infinity) return 0;
  if (t === -Infinity) return 1;
  const half = 0.5 * incompleteBeta(degrees / (degrees + t * t), degrees / 2, 0.5);
  return t >= 0 ? half : 1 - half;
}

/** The value that a t variable exceeds with this chance. */
export function studentQuantile(chance: number, degrees: number): number {
  if (chance > 0.5) return -studentQuantile(1 - chance, degrees);
  let low = 0;
  let high = 1;
  while (studentTail(high, degrees) > chance) high *= 2;
  for (;;) {
    const guess = (low + high) / 2;
    if (guess <= low || guess >= high) return high;
    if (studentTail(guess, degrees) > chance) low = guess;
    else high = guess;
  }
}

const MOST_TERMS = 300;
const SMALLEST = 1e-300;
const PRECISION = 1e-15;

function incompleteBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  // The fraction converges fast only on this side of the mean; the other side follows by symmetry.
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(1 - x)) / a;
  let c = 1;
  let d = 1 / away(1 - ((a + b) * x) / (a + 1));
  let fraction = d;
  for (let m = 1; m <= MOST_TERMS; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away(1 + even * d);
    c = away(1 + even / c);
    fraction *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away(1 + odd * d);
    c = away(1 + odd / c);
    fraction *= d * c;
    if (Math.abs(d * c - 1) < PRECISION) break;
  }
  return front * fraction;
}

function away(value: number): number {
  return Math.abs(value) < SMALLEST ? SMALLEST : value;
}

const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
];

/** The logarithm of the gamma function for x ≥ 0.5 (Lanczos). */
function logGamma(x: number): number {
  const z = x - 1;
  let sum = LANCZOS[0];
  for (let i = 1; i < LANCZOS.length; i++) sum += LANCZOS[i] / (z + i);
  const t = z + 7.5;
  return 0.5 * Math.log(2 * Math.PI) + (z + 0.5) * Math.log(t) - t + Math.log(sum);
}
