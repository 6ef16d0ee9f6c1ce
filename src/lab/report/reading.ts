import { percentilePosition } from "../../measure/percentile.ts";
import { FEWEST_SAMPLES, type LatencySummary, shareOf, STATISTICS, type StatisticName } from "../../measure/summary.ts";

/**
 * A statistic as far as it could be read. `between`: only a run's own percentiles are known, and the value lies
 * somewhere between two of them. `not-reached`: it needs a request that did not complete, so it is +∞.
 */
export type Reading =
  | { readonly state: "ok"; readonly value: number }
  | { readonly state: "between"; readonly low: number; readonly high: number }
  | { readonly state: "not-reached" }
  | { readonly state: "too-few" }
  | { readonly state: "unavailable" };

export const UNKNOWN: Reading = { state: "unavailable" };

/** A distribution in five readings. */
export type Readings = Readonly<Record<StatisticName, Reading>> & { readonly n: number };

/** A latency over the requests that completed and over all that were offered. */
export interface PopulationReadings {
  readonly completed: Readings;
  readonly offered: Readings;
}

/** What is known of a latency in one run where its values are not: percentiles of the completed requests. */
export interface LatencyPoints {
  readonly n: number;
  /** Requests that did not complete, +∞ in the offered population. */
  readonly unreached: number;
  readonly mean: number | undefined;
  /** Share of the completed requests and value, ascending. */
  readonly points: readonly (readonly [share: number, value: number])[];
}

/** A reading of a number that may be missing. */
export function readingOf(value: number | null | undefined): Reading {
  return value === undefined || value === null || Number.isNaN(value)
    ? UNKNOWN
    : value === Infinity
      ? { state: "not-reached" }
      : { state: "ok", value };
}

/** The value of a reading that is one number. */
export function valueOf(reading: Reading): number | undefined {
  return reading.state === "ok" ? reading.value : undefined;
}

/** A number to draw or compare with: of a range its middle; undefined where there is none. */
export function middleOf(reading: Reading): number | undefined {
  return reading.state === "between" ? (reading.low + reading.high) / 2 : valueOf(reading);
}

/** A summary of the results file as readings. */
export function readingsOf(summary: LatencySummary): Readings {
  const read = (name: StatisticName): Reading => {
    const state = summary.states[name];
    return state === "ok" ? readingOf(summary[name]) : { state };
  };
  return byStatistic(summary.n, read);
}

/** Readings of one or several runs of which only percentiles are known; the runs' requests count as one population. */
export function readingsOfPoints(runs: readonly LatencyPoints[]): PopulationReadings {
  return {
    completed: pooled(runs, 0),
    offered: pooled(
      runs,
      sum(runs, ({ unreached }) => unreached),
    ),
  };
}

/** Nothing is known. */
export const UNKNOWN_POPULATIONS: PopulationReadings = {
  completed: byStatistic(0, () => UNKNOWN),
  offered: byStatistic(0, () => UNKNOWN),
};

export function byStatistic(n: number, read: (name: StatisticName) => Reading): Readings {
  const entries = STATISTICS.map((name) => [name, read(name)] as const);
  return { n, ...(Object.fromEntries(entries) as Record<StatisticName, Reading>) };
}

function pooled(runs: readonly LatencyPoints[], unreached: number): Readings {
  const reached = sum(runs, ({ n }) => n);
  const n = reached + unreached;
  return byStatistic(n, (name) => {
    if (n < FEWEST_SAMPLES[name]) return { state: "too-few" };
    if (name === "mean") return pooledMean(runs, reached, unreached);
    const { lower, fraction } = percentilePosition(n, shareOf(name));
    if (lower + fraction > reached - 1) return { state: "not-reached" };
    return pooledPercentile(runs, reached < 2 ? 0 : (lower + fraction) / (reached - 1));
  });
}

function pooledMean(runs: readonly LatencyPoints[], reached: number, unreached: number): Reading {
  if (unreached > 0) return { state: "not-reached" };
  let total = 0;
  for (const { n, mean } of runs) {
    if (n > 0 && mean === undefined) return UNKNOWN;
    total += n * (mean ?? 0);
  }
  return readingOf(total / reached);
}

/** A percentile of runs together lies between the smallest and the largest of theirs. */
function pooledPercentile(runs: readonly LatencyPoints[], share: number): Reading {
  let low = Infinity;
  let high = -Infinity;
  for (const run of runs) {
    if (run.n === 0) continue;
    const bounds = boundsAt(run.points, share);
    if (bounds === undefined) return UNKNOWN;
    low = Math.min(low, bounds.low);
    high = Math.max(high, bounds.high);
  }
  if (low > high) return UNKNOWN;
  return low === high ? { state: "ok", value: low } : { state: "between", low, high };
}

// A position computed from counts may miss a percentile that it means by a part of one request.
const SAME_SHARE = 1e-9;

function boundsAt(points: LatencyPoints["points"], share: number): { low: number; high: number } | undefined {
  const exact = points.find(([at]) => Math.abs(at - share) <= SAME_SHARE);
  if (exact !== undefined) return { low: exact[1], high: exact[1] };
  const below = points.findLast(([at]) => at < share);
  const above = points.find(([at]) => at > share);
  return below === undefined || above === undefined ? undefined : { low: below[1], high: above[1] };
}

function sum(runs: readonly LatencyPoints[], of: (run: LatencyPoints) => number): number {
  return runs.reduce((total, run) => total + of(run), 0);
}
