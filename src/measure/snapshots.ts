import { NS_PER_MS } from "../core/clock.ts";
import type { RequestRecord } from "../core/request-record.ts";
import { type CacheShares, cacheShares } from "./cache-shares.ts";
import { type ServedRates, servedRates } from "./served-rates.ts";
import { type Slo } from "./slo.ts";
import {
  type LatencySummary,
  type PopulationSummaries,
  STATISTICS,
  type StatisticName,
  type StatisticState,
} from "./summary.ts";
import { type MeasurementWindow, subWindows } from "./window.ts";
import { measureWindow } from "./window-measures.ts";

/** The latencies of one part of a window. */
export interface Snapshot {
  readonly window: MeasurementWindow;
  readonly ttftMs: PopulationSummaries;
  readonly tpotMs: PopulationSummaries;
  readonly itlMs: PopulationSummaries;
  readonly e2eMs: PopulationSummaries;
  readonly goodputShare: number;
  readonly rates: ServedRates;
  readonly cache: CacheShares;
}

/** Cuts a window into equal parts and measures each, as studies do that read a dashboard every 100 seconds. */
export function measureSnapshots(
  records: Iterable<RequestRecord>,
  window: MeasurementWindow,
  count: number,
  slo: Slo = {},
): Snapshot[] {
  const all = [...records];
  return subWindows(window, count).map((part) => {
    const measures = measureWindow(all, part, slo);
    return {
      window: part,
      ttftMs: measures.ttftNs.summaries(NS_PER_MS),
      tpotMs: measures.tpotNs.summaries(NS_PER_MS),
      itlMs: measures.itlMs(),
      e2eMs: measures.e2eNs.summaries(NS_PER_MS),
      goodputShare: measures.goodputShare(),
      rates: servedRates(all, part),
      cache: cacheShares(all, part),
    };
  });
}

/**
 * The mean of each statistic over snapshots, `ok` only if it is in all of them. The mean of percentiles is not the
 * percentile of the whole: it hides a bad stretch. It is here to be compared with published tables.
 */
export function snapshotMean(parts: readonly LatencySummary[]): LatencySummary {
  const values: Record<StatisticName, number | null> = { mean: null, p50: null, p90: null, p95: null, p99: null };
  const states: Record<StatisticName, StatisticState> = { mean: "ok", p50: "ok", p90: "ok", p95: "ok", p99: "ok" };
  for (const name of STATISTICS) {
    let sum = 0;
    for (const part of parts) {
      if (part.states[name] === "not-reached" || states[name] === "not-reached") states[name] = "not-reached";
      else if (part.states[name] === "too-few") states[name] = "too-few";
      sum += part[name] ?? 0;
    }
    if (parts.length === 0) states[name] = "too-few";
    if (states[name] === "ok") values[name] = sum / parts.length;
  }
  let n = 0;
  for (const part of parts) n += part.n;
  return { n, ...values, states };
}
