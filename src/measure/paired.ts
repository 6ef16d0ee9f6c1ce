import type { RequestRecord } from "../core/request-record.ts";
import type { Rng } from "../core/rng.ts";
import { type BootstrapOptions, bootstrapInterval, type Interval, medianOfSorted } from "./bootstrap.ts";
import { hodgesLehmann } from "./hodges-lehmann.ts";
import { meanOf } from "./sample.ts";
import { type SignConsistency, signConsistency } from "./sign-consistency.ts";
import { accountInWindow, isInWindow, type MeasurementWindow } from "./window.ts";

/** The same requests in two arms, in order of arrival; +∞ is a request that did not complete. */
export interface PairedValues {
  readonly baseline: Float64Array;
  readonly treatment: Float64Array;
  /** Requests that only one arm was offered; a fair comparison has none. */
  readonly unpaired: number;
}

/** Pairs the requests of two arms by id, each with its own window (the clocks of two runs have nothing in common). */
export function pairRequests(
  baseline: { readonly records: Iterable<RequestRecord>; readonly window: MeasurementWindow },
  treatment: { readonly records: Iterable<RequestRecord>; readonly window: MeasurementWindow },
  valueOf: (record: RequestRecord) => number | undefined,
): PairedValues {
  const byId = new Map<string, RequestRecord>();
  for (const record of treatment.records) if (isInWindow(record, treatment.window)) byId.set(record.id, record);
  const offered = byId.size;
  const pairs: { atNs: number; baseline: number; treatment: number }[] = [];
  let alone = 0;
  for (const record of baseline.records) {
    if (!isInWindow(record, baseline.window)) continue;
    const other = byId.get(record.id);
    if (other === undefined) alone += 1;
    else {
      pairs.push({
        atNs: record.intendedNs,
        baseline: valueInWindow(record, baseline.window, valueOf),
        treatment: valueInWindow(other, treatment.window, valueOf),
      });
    }
  }
  pairs.sort((a, b) => a.atNs - b.atNs);
  return {
    baseline: Float64Array.from(pairs, (pair) => pair.baseline),
    treatment: Float64Array.from(pairs, (pair) => pair.treatment),
    unpaired: alone + offered - pairs.length,
  };
}

/** Two arms compared request by request; differences are treatment minus baseline, so negative is faster. */
export interface PairedComparison {
  readonly pairs: number;
  readonly unpaired: number;
  readonly bothCompleted: number;
  readonly onlyBaselineCompleted: number;
  readonly onlyTreatmentCompleted: number;
  readonly neitherCompleted: number;
  /** Pairs in which the treatment was faster, slower, equal; completing alone is faster. */
  readonly faster: number;
  readonly slower: number;
  readonly equal: number;
  /**
   * Over pairs with at least one completion, the other being ±∞; null where the median pair is such a one, or there is
   * none.
   */
  readonly medianDifference: number | null;
  /** Bootstrap interval of the median difference; its ends may be infinite. */
  readonly medianInterval: Interval | null;
  /** Over the pairs that both arms completed, and so blind to failures. */
  readonly meanDifference: number | null;
  readonly hodgesLehmann: number | null;
  /** Signs of the runs' own median differences. */
  readonly runs: SignConsistency;
  /**
   * The interval excludes 0 and all runs have the same sign. One run alone shows a difference of that run: near
   * saturation a repetition may well show the opposite, because a queue remembers early accidents for long.
   */
  readonly verdict: "faster" | "slower" | "no-difference-shown";
}

/** Compares paired values of one or several runs. */
export function comparePaired(
  runs: readonly PairedValues[],
  rng: Rng,
  options: BootstrapOptions = {},
): PairedComparison {
  const differences: number[] = [];
  const finite: number[] = [];
  let neither = 0;
  let unpaired = 0;
  let pairs = 0;
  const medians: number[] = [];
  for (const run of runs) {
    const from = differences.length;
    unpaired += run.unpaired;
    pairs += run.baseline.length;
    for (let i = 0; i < run.baseline.length; i++) {
      const difference = run.treatment[i] - run.baseline[i];
      if (Number.isNaN(difference)) neither += 1;
      else differences.push(difference);
      if (Number.isFinite(difference)) finite.push(difference);
    }
    if (differences.length > from) medians.push(medianOfSorted(Float64Array.from(differences.slice(from)).sort()));
  }
  const interval = bootstrapInterval(differences, "median", rng, options);
  const signs = signConsistency(medians);
  const sorted = Float64Array.from(finite).sort();
  return {
    pairs,
    unpaired,
    bothCompleted: finite.length,
    onlyBaselineCompleted: count(differences, (value) => value === Infinity),
    onlyTreatmentCompleted: count(differences, (value) => value === -Infinity),
    neitherCompleted: neither,
    faster: count(differences, (value) => value < 0),
    slower: count(differences, (value) => value > 0),
    equal: count(differences, (value) => value === 0) + neither,
    medianDifference: finiteOrNull(medianOfSorted(Float64Array.from(differences).sort())),
    medianInterval: interval,
    meanDifference: finiteOrNull(meanOf(sorted)),
    hodgesLehmann: finiteOrNull(hodgesLehmann(sorted)),
    runs: signs,
    verdict: signs.isConsistent ? verdictOf(interval) : "no-difference-shown",
  };
}

function verdictOf(interval: Interval | null): PairedComparison["verdict"] {
  if (interval !== null && interval.high < 0) return "faster";
  if (interval !== null && interval.low > 0) return "slower";
  return "no-difference-shown";
}

function valueInWindow(
  record: RequestRecord,
  window: MeasurementWindow,
  valueOf: (record: RequestRecord) => number | undefined,
): number {
  return accountInWindow(record, window) === "completed" ? (valueOf(record) ?? Infinity) : Infinity;
}

function count(values: readonly number[], is: (value: number) => boolean): number {
  let total = 0;
  for (const value of values) if (is(value)) total += 1;
  return total;
}

function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
