import { percentilePosition } from "./percentile.ts";
import { meanOf } from "./sample.ts";

/**
 * The noise of a statistic by leaving out parts of the data in turn. A part is a stretch of one run's time, the same in
 * every arm: what is left out of two arms is left out of both, so the values of an arm without each part are all that is
 * needed to compare it with any other, paired.
 */

/** Values of requests, +∞ for one that never got there, and the part that each belongs to. */
export interface PartedValues {
  readonly values: Float64Array;
  readonly parts: Uint16Array;
  readonly partCount: number;
}

/** A percentile over all values, and without each part. */
export function percentileWithout({ values, parts, partCount }: PartedValues, share: number): WithoutParts {
  const order = Uint32Array.from(values.keys()).sort((a, b) => (values[a] < values[b] ? -1 : 1));
  const counts = countParts(parts, partCount);
  const at = (skipped: number): number => {
    const n = values.length - (skipped < 0 ? 0 : counts[skipped]);
    if (n === 0) return Number.NaN;
    const { lower, fraction } = percentilePosition(n, share);
    let seen = -1;
    let low = Number.NaN;
    for (const index of order) {
      if (parts[index] === skipped) continue;
      seen += 1;
      if (seen === lower) low = values[index];
      if (seen === lower && (fraction === 0 || low === Infinity)) return low;
      if (seen === lower + 1) return values[index] === Infinity ? Infinity : low + (values[index] - low) * fraction;
    }
    return low;
  };
  return { all: at(-1), without: Array.from({ length: partCount }, (_, part) => at(part)) };
}

/** A mean over all values, and without each part. */
export function meanWithout({ values, parts, partCount }: PartedValues): WithoutParts {
  const counts = countParts(parts, partCount);
  const sums = new Float64Array(partCount);
  let unreached = 0;
  const unreachedOf = new Uint32Array(partCount);
  for (let i = 0; i < values.length; i++) {
    if (values[i] === Infinity) {
      unreached += 1;
      unreachedOf[parts[i]] += 1;
    } else sums[parts[i]] += values[i];
  }
  const total = sums.reduce((sum, value) => sum + value, 0);
  const without = Array.from(sums, (sum, part) =>
    unreached > unreachedOf[part] ? Infinity : (total - sum) / (values.length - counts[part]),
  );
  return { all: unreached > 0 ? Infinity : total / values.length, without };
}

/** A statistic of all data, and of all but one part, for each part. */
export interface WithoutParts {
  readonly all: number;
  readonly without: readonly number[];
}

/**
 * The standard error of a statistic from its values without each part, `partsPerRun` consecutive parts of each run. Parts
 * of one run may depend on each other, which an error over parts would not see, and runs are few, which makes an error
 * over runs uncertain: the larger of the two is taken. Infinite where a value is.
 */
export function jackknifeError(without: readonly number[], partsPerRun: number): number {
  const parts = without.length;
  if (parts < 2) return Infinity;
  const mean = meanOf(without);
  const influences = without.map((value) => (parts - 1) * (mean - value));
  if (influences.some((influence) => !Number.isFinite(influence))) return Infinity;
  const runs = Math.floor(parts / partsPerRun);
  const ofRuns = Array.from({ length: runs }, (_, run) =>
    meanOf(influences.slice(run * partsPerRun, (run + 1) * partsPerRun)),
  );
  return Math.max(standardError(influences), runs < 2 ? 0 : standardError(ofRuns));
}

/** Of values around 0. */
function standardError(influences: readonly number[]): number {
  const n = influences.length;
  return Math.sqrt(influences.reduce((sum, value) => sum + value * value, 0) / (n * (n - 1)));
}

function countParts(parts: Uint16Array, partCount: number): Uint32Array {
  const counts = new Uint32Array(partCount);
  for (const part of parts) counts[part] += 1;
  return counts;
}
