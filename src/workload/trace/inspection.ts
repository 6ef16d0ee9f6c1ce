import { quantileOfSorted } from "../quantile.ts";
import { detectGrid } from "./grid.ts";
import { type CacheCeiling, engineCacheCeiling, idCacheCeiling } from "./infinite-cache.ts";
import { inputTokensOf, type TraceRow } from "./row.ts";
import { countSessions, type SessionCount } from "./session-count.ts";
import { promptOfRow } from "./trace-sessions.ts";
import { effectiveTimesMs } from "./transform.ts";

/** A distribution of lengths; percentiles with linear interpolation. */
export interface LengthSummary {
  readonly mean: number;
  readonly min: number;
  readonly p5: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/** What is to know of a trace before running it. */
export interface TraceInspection {
  readonly rows: number;
  /** Between the first and the last timestamp. */
  readonly durationSeconds: number;
  /** Rows per second of that time, without those that wait; null where all rows have one time. */
  readonly meanRateRps: number | null;
  /** Turns that wait for the answer before them: when they are sent, nobody knows beforehand. */
  readonly waitingRows: number;
  /** Rows with a time before the one in front of them. */
  readonly outOfOrderRows: number;
  readonly inputTokens: LengthSummary;
  readonly outputTokens: LengthSummary;
  readonly totalInputTokens: number;
  readonly sessions: SessionCount;
  /** Null where rows have no common grid of times. */
  readonly grid: { stepMs: number; times: number; rowsPerTime: number; mostRowsPerTime: number } | null;
  readonly traceBlockTokens: number;
  readonly ceiling: CacheCeiling;
  readonly engine: { readonly blockTokens: number; readonly ceiling: CacheCeiling } | null;
}

/** Measures a trace; with an engine's block size also the ceiling in that engine's full blocks. */
export function inspectTrace(
  rows: readonly TraceRow[],
  traceBlockTokens: number,
  engineBlockTokens?: number,
): TraceInspection {
  const inputs = Float64Array.from(rows, inputTokensOf);
  const outputs = Float64Array.from(rows, (row) => row.outputTokens);
  const times = effectiveTimesMs(rows);
  const firstMs = times.reduce((least, time) => Math.min(least, time), Infinity);
  const lastMs = times.reduce((most, time) => Math.max(most, time), -Infinity);
  const durationSeconds = rows.length === 0 ? 0 : (lastMs - firstMs) / 1000;
  const grid = detectGrid(rows);
  const waitingRows = countWaiting(rows);
  return {
    rows: rows.length,
    durationSeconds,
    meanRateRps: durationSeconds === 0 ? null : (rows.length - waitingRows) / durationSeconds,
    waitingRows,
    outOfOrderRows: times.filter((time, at) => at > 0 && time < times[at - 1]).length,
    inputTokens: summarise(inputs),
    outputTokens: summarise(outputs),
    totalInputTokens: inputs.reduce((sum, tokens) => sum + tokens, 0),
    sessions: countSessions(rows),
    grid:
      grid === undefined
        ? null
        : {
            stepMs: grid.stepMs,
            times: grid.times,
            rowsPerTime: grid.rowsPerTime,
            mostRowsPerTime: grid.mostRowsPerTime,
          },
    traceBlockTokens,
    ceiling: idCacheCeiling(rows, traceBlockTokens),
    engine:
      engineBlockTokens === undefined
        ? null
        : {
            blockTokens: engineBlockTokens,
            ceiling: engineCacheCeiling(promptsOf(rows, traceBlockTokens), engineBlockTokens),
          },
  };
}

function countWaiting(rows: readonly TraceRow[]): number {
  const begun = new Set<string>();
  return rows.filter(({ sessionId, delayMs }) => {
    const waits = delayMs !== undefined && sessionId !== undefined && begun.has(sessionId);
    if (sessionId !== undefined) begun.add(sessionId);
    return waits;
  }).length;
}

function* promptsOf(rows: readonly TraceRow[], traceBlockTokens: number): Generator<ReturnType<typeof promptOfRow>> {
  for (const [at, row] of rows.entries()) yield promptOfRow(row, at, traceBlockTokens);
}

function summarise(values: Float64Array): LengthSummary {
  const sorted = values.toSorted();
  return {
    mean: sorted.reduce((sum, value) => sum + value, 0) / sorted.length,
    min: quantileOfSorted(sorted, 0),
    p5: quantileOfSorted(sorted, 0.05),
    p50: quantileOfSorted(sorted, 0.5),
    p95: quantileOfSorted(sorted, 0.95),
    p99: quantileOfSorted(sorted, 0.99),
    max: quantileOfSorted(sorted, 1),
  };
}
