/**
 * `not-reached`: the statistic needs a request that never got there, so it is +∞. `too-few`: the population is too
 * small for the statistic to mean anything. The value is null in both cases.
 */
export type StatisticState = "ok" | "not-reached" | "too-few";

export type StatisticName = "mean" | "p50" | "p90" | "p95" | "p99";

export const STATISTICS: readonly StatisticName[] = ["mean", "p50", "p90", "p95", "p99"];

/** The share of the sample below each percentile. */
const SHARES: Readonly<Record<Exclude<StatisticName, "mean">, number>> = { p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99 };

/**
 * The smallest population each statistic is given for. Below one sample beyond the percentile (10 for p90, 20 for p95)
 * it only interpolates towards the maximum; for p99 the house rule is ten times that, 1,000.
 */
export const FEWEST_SAMPLES: Readonly<Record<StatisticName, number>> = { mean: 1, p50: 1, p90: 10, p95: 20, p99: 1000 };

/** A distribution in five numbers; n stands beside them because a percentile without it says nothing. */
export interface LatencySummary {
  readonly n: number;
  readonly mean: number | null;
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
  readonly states: Readonly<Record<StatisticName, StatisticState>>;
}

/** A latency over the requests that completed and over all that were offered, where a request that did not is +∞. */
export interface PopulationSummaries {
  readonly completed: LatencySummary;
  readonly offered: LatencySummary;
}

/** Builds a summary from a population's size and a function that may answer Infinity. */
export function summarise(n: number, valueOf: (name: StatisticName) => number): LatencySummary {
  const values: Record<StatisticName, number | null> = { mean: null, p50: null, p90: null, p95: null, p99: null };
  const states: Record<StatisticName, StatisticState> = {
    mean: "too-few",
    p50: "too-few",
    p90: "too-few",
    p95: "too-few",
    p99: "too-few",
  };
  for (const name of STATISTICS) {
    if (n < FEWEST_SAMPLES[name]) continue;
    const value = valueOf(name);
    states[name] = value === Infinity ? "not-reached" : "ok";
    values[name] = value === Infinity ? null : value;
  }
  return { n, ...values, states };
}

/** The share of the sample below a percentile. */
export function shareOf(name: Exclude<StatisticName, "mean">): number {
  return SHARES[name];
}
