/** Whether runs agree on the direction of a difference. */
export interface SignConsistency {
  readonly runs: number;
  readonly negative: number;
  readonly positive: number;
  readonly zero: number;
  /** All runs have the same sign, and it is not 0. */
  readonly isConsistent: boolean;
  /** Two-sided sign test: how likely at least this much agreement is if both directions were equally likely. */
  readonly chance: number;
}

/** Counts the signs of one difference per run; with few runs even full agreement may be chance, which `chance` says. */
export function signConsistency(differences: readonly number[]): SignConsistency {
  let negative = 0;
  let positive = 0;
  for (const difference of differences) {
    if (difference < 0) negative += 1;
    if (difference > 0) positive += 1;
  }
  const runs = differences.length;
  const isConsistent = runs > 0 && (negative === runs || positive === runs);
  return {
    runs,
    negative,
    positive,
    zero: runs - negative - positive,
    isConsistent,
    chance: twoSidedSignTest(Math.max(negative, positive), negative + positive),
  };
}

function twoSidedSignTest(most: number, n: number): number {
  // The binomial term is built up from 2^-n; runs are few, so nothing underflows.
  let term = 0.5 ** n;
  let tail = 0;
  for (let k = 0; k <= n - most; k++) {
    tail += term;
    term *= (n - k) / (k + 1);
  }
  return Math.min(1, 2 * tail);
}
