import { ACCOUNTS, type Accounting } from "../../core/accounts.ts";
import { NS_PER_MS } from "../../core/clock.ts";
import { UNAVAILABLE } from "../../core/request-record.ts";
import { DurationHistogram } from "../../measure/duration-histogram.ts";
import { Sample } from "../../measure/sample.ts";
import type { Slo } from "../../measure/slo.ts";
import { STATISTICS } from "../../measure/summary.ts";
import type { Refusal } from "../results/types.ts";
import {
  type CellRates,
  type CellTokens,
  LATENCIES,
  type LatencyName,
  levelKey,
  type ReportCell,
  type ReportLevel,
} from "./cell.ts";
import type { CellEvidence, RequestColumns } from "./evidence.ts";
import {
  byStatistic,
  type PopulationReadings,
  type Reading,
  type Readings,
  readingOf,
  readingsOf,
  readingsOfPoints,
  UNKNOWN,
  UNKNOWN_POPULATIONS,
} from "./reading.ts";

/** Gaps between chunks of all runs of an arm at a level, which no run keeps on its own. */
export interface PooledGaps {
  readonly completed: DurationHistogram;
  /** Gaps of requests that did not complete. */
  readonly broken: DurationHistogram;
}

export function emptyGaps(): PooledGaps {
  return { completed: new DurationHistogram(), broken: new DurationHistogram() };
}

/** All runs of an arm at a level, as one population of requests. */
export interface ArmAtLevel {
  readonly arm: string;
  readonly policy: string | undefined;
  readonly level: ReportLevel;
  readonly cells: readonly ReportCell[];
  /** One per cell; undefined unless every cell has records. */
  readonly evidence: readonly CellEvidence[] | undefined;
  readonly accounting: Accounting;
  readonly refusals: readonly Refusal[];
  /** Over the requests of all runs together. */
  readonly latencies: Readonly<Record<LatencyName, PopulationReadings>>;
  /** Means over snapshots and runs of the completed requests' statistics, as published tables have them. */
  readonly snapshotMeans: Readonly<Record<LatencyName, Readings>> | undefined;
  /** Means over runs of the runs' own statistics, completed requests. */
  readonly runMeans: Readonly<Record<LatencyName, Readings>>;
  readonly rates: CellRates;
  readonly tokens: CellTokens;
  readonly goodputShare: number | undefined;
  readonly slo: Slo;
  readonly cache: PooledCache;
  readonly spread: { readonly mean: number; readonly p95: number; readonly max: number } | undefined;
  readonly meanSkew: number | undefined;
  /** Runs that could not keep up; undefined where nobody can tell. */
  readonly saturatedRuns: number | undefined;
}

/** Shares of prompt tokens; undefined where unknown. */
export interface PooledCache {
  readonly ceiling: number | undefined;
  readonly predicted: number | undefined;
  readonly observed: number | undefined;
}

/** Pools cells by arm and level, in the order in which arms come. */
export function poolCells(
  cells: readonly ReportCell[],
  evidenceOf: (cell: ReportCell) => CellEvidence | undefined,
  gapsOf: (group: string) => PooledGaps | undefined,
): ArmAtLevel[] {
  const groups = new Map<string, ReportCell[]>();
  for (const cell of cells) {
    const key = groupKey(cell);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [cell]);
    else group.push(cell);
  }
  return Array.from(groups, ([key, group]) => pool(group, evidenceOf, gapsOf(key)));
}

export function groupKey({ arm, level }: Pick<ReportCell, "arm" | "level">): string {
  return `${arm}|${levelKey(level)}`;
}

function pool(
  cells: readonly ReportCell[],
  evidenceOf: (cell: ReportCell) => CellEvidence | undefined,
  gaps: PooledGaps | undefined,
): ArmAtLevel {
  const found = cells.flatMap((cell) => evidenceOf(cell) ?? []);
  const evidence = found.length === cells.length ? found : undefined;
  const accounting = sumAccounting(cells);
  const spreads = cells.flatMap(({ inflightSpread }) =>
    inflightSpread === undefined || inflightSpread === UNAVAILABLE ? [] : [inflightSpread],
  );
  const known = cells.flatMap(({ saturated }) => (saturated === undefined ? [] : [saturated]));
  return {
    arm: cells[0].arm,
    policy: cells[0].policy,
    level: cells[0].level,
    cells,
    evidence,
    accounting,
    refusals: mergeRefusals(cells),
    latencies: byLatency((name) => pooledLatency(name, cells, evidence, gaps, accounting)),
    snapshotMeans: cells.every(({ snapshotMeans }) => snapshotMeans !== undefined)
      ? byLatency((name) =>
          meanReadings(
            cells.map(({ snapshotMeans }) =>
              snapshotMeans === undefined ? UNKNOWN_POPULATIONS.completed : readingsOf(snapshotMeans[name].completed),
            ),
          ),
        )
      : undefined,
    runMeans: byLatency((name) => meanReadings(cells.map(({ latencies }) => latencies[name].readings.completed))),
    rates: {
      offeredPerSecond: meanOf(cells, ({ rates }) => rates.offeredPerSecond),
      requestsPerSecond: meanOf(cells, ({ rates }) => rates.requestsPerSecond),
      outputTokensPerSecond: meanOf(cells, ({ rates }) => rates.outputTokensPerSecond),
      requestsPerSecondOverSpan: meanOf(cells, ({ rates }) => rates.requestsPerSecondOverSpan),
      outputTokensPerSecondOverSpan: meanOf(cells, ({ rates }) => rates.outputTokensPerSecondOverSpan),
    },
    tokens: pooledTokens(cells, evidence),
    goodputShare:
      evidence === undefined
        ? weightedMean(
            cells,
            ({ goodputShare }) => goodputShare,
            ({ accounting: { offered } }) => offered,
          )
        : keptShare(evidence),
    slo: cells[0].slo,
    cache: pooledCache(cells, evidence),
    spread:
      spreads.length < cells.length
        ? undefined
        : {
            mean: spreads.reduce((sum, { mean }) => sum + mean, 0) / spreads.length,
            p95: Math.max(...spreads.map(({ p95 }) => p95)),
            max: Math.max(...spreads.map(({ max }) => max)),
          },
    meanSkew: meanOf(cells, ({ inflightMeanSkew }) =>
      inflightMeanSkew === UNAVAILABLE ? undefined : inflightMeanSkew,
    ),
    saturatedRuns: known.length < cells.length ? undefined : known.filter(Boolean).length,
  };
}

function pooledLatency(
  name: LatencyName,
  cells: readonly ReportCell[],
  evidence: readonly CellEvidence[] | undefined,
  gaps: PooledGaps | undefined,
  { offered, completed }: Accounting,
): PopulationReadings {
  if (cells.length === 1) return cells[0].latencies[name].readings;
  if (name === "itlMs") {
    if (gaps === undefined || evidence === undefined)
      return readingsOfPoints(cells.map((cell) => cell.latencies[name].points));
    const all = new DurationHistogram();
    all.merge(gaps.completed);
    all.merge(gaps.broken);
    return {
      completed: readingsOf(gaps.completed.summary(NS_PER_MS)),
      offered: readingsOf(all.summary(NS_PER_MS, offered - completed)),
    };
  }
  if (evidence === undefined) return readingsOfPoints(cells.map((cell) => cell.latencies[name].points));
  const summaries = sampleOf(evidence, (columns) => columns[name]).summaries(1);
  return { completed: readingsOf(summaries.completed), offered: readingsOf(summaries.offered) };
}

/** A column of all runs as one sample; what has no such time is in neither population. */
export function sampleOf(evidence: readonly CellEvidence[], column: (columns: RequestColumns) => Float64Array): Sample {
  const sample = new Sample();
  for (const { columns } of evidence) {
    for (const value of column(columns)) {
      if (value === Infinity) sample.addUnreached();
      else if (!Number.isNaN(value)) sample.add(value);
    }
  }
  return sample;
}

/** Readings averaged; one that is not a number in any of them is none of the mean either. */
function meanReadings(parts: readonly Readings[]): Readings {
  const entries = STATISTICS.map((name) => [name, meanReading(parts.map((part) => part[name]))] as const);
  const byName = Object.fromEntries(entries) as Record<(typeof STATISTICS)[number], Reading>;
  return byStatistic(
    parts.reduce((sum, { n }) => sum + n, 0),
    (name) => byName[name],
  );
}

function meanReading(parts: readonly Reading[]): Reading {
  let sum = 0;
  for (const part of parts) {
    if (part.state !== "ok") return part.state === "between" ? UNKNOWN : part;
    sum += part.value;
  }
  return readingOf(parts.length === 0 ? undefined : sum / parts.length);
}

function pooledTokens(cells: readonly ReportCell[], evidence: readonly CellEvidence[] | undefined): CellTokens {
  const offered = (cell: ReportCell): number => cell.accounting.offered;
  const completed = (cell: ReportCell): number => cell.accounting.completed;
  const lost = (cell: ReportCell): number => cell.accounting.offered - cell.accounting.completed;
  const totals = cells.map(({ tokens }) => tokens.outputTotal);
  const means = evidence === undefined ? undefined : promptMeans(evidence);
  return {
    promptMean: weightedMean(cells, ({ tokens }) => tokens.promptMean, offered),
    outputMean: weightedMean(cells, ({ tokens }) => tokens.outputMean, completed),
    completedPromptMean:
      means === undefined
        ? weightedMean(cells, ({ tokens }) => tokens.completedPromptMean, completed)
        : means.completed,
    lostPromptMean: means === undefined ? weightedMean(cells, ({ tokens }) => tokens.lostPromptMean, lost) : means.lost,
    outputTotal: totals.some((total) => total === undefined)
      ? undefined
      : totals.reduce<number>((sum, total) => sum + (total ?? 0), 0),
  };
}

/** Mean prompts of what completed and of what did not. */
export function promptMeans(evidence: readonly CellEvidence[]): {
  completed: number | undefined;
  lost: number | undefined;
} {
  const sums = { completed: 0, lost: 0 };
  const counts = { completed: 0, lost: 0 };
  for (const { columns } of evidence) {
    for (let i = 0; i < columns.length; i++) {
      const kind = ACCOUNTS[columns.account[i]] === "completed" ? "completed" : "lost";
      sums[kind] += columns.promptTokens[i];
      counts[kind] += 1;
    }
  }
  const mean = (kind: "completed" | "lost"): number | undefined =>
    counts[kind] === 0 ? undefined : sums[kind] / counts[kind];
  return { completed: mean("completed"), lost: mean("lost") };
}

function pooledCache(cells: readonly ReportCell[], evidence: readonly CellEvidence[] | undefined): PooledCache {
  const weight = (cell: ReportCell): number => cell.accounting.offered * (cell.tokens.promptMean ?? 0);
  const share = (of: (cell: ReportCell) => number | "unavailable" | undefined): number | undefined =>
    weightedMean(
      cells,
      (cell) => {
        const value = of(cell);
        return value === UNAVAILABLE ? undefined : value;
      },
      weight,
    );
  return {
    ceiling: share(({ cache }) => cache?.ceiling),
    predicted:
      evidence === undefined
        ? share(({ cache }) => cache?.predicted)
        : tokenShare(evidence, ({ predictedTokens }) => predictedTokens),
    observed:
      evidence === undefined
        ? share(({ cache }) => cache?.observed)
        : tokenShare(evidence, ({ cachedTokens }) => cachedTokens),
  };
}

function keptShare(evidence: readonly CellEvidence[]): number | undefined {
  let kept = 0;
  let all = 0;
  for (const { columns } of evidence) {
    for (const one of columns.keptSlo) kept += one;
    all += columns.length;
  }
  return all === 0 ? undefined : kept / all;
}

function tokenShare(
  evidence: readonly CellEvidence[],
  column: (columns: RequestColumns) => Float64Array,
): number | undefined {
  let part = 0;
  let all = 0;
  for (const { columns } of evidence) {
    const values = column(columns);
    for (let i = 0; i < columns.length; i++) {
      if (Number.isNaN(values[i])) continue;
      part += values[i];
      all += columns.promptTokens[i];
    }
  }
  return all === 0 ? undefined : part / all;
}

function mergeRefusals(cells: readonly ReportCell[]): Refusal[] {
  const groups = new Map<string, Refusal>();
  for (const refusal of cells.flatMap(({ refusals }) => refusals)) {
    // Messages often carry numbers of their own; what was said is the same.
    const key = JSON.stringify([
      refusal.account,
      refusal.status,
      refusal.code,
      refusal.message.replaceAll(/\d+/g, "#"),
    ]);
    const count = (groups.get(key)?.count ?? 0) + refusal.count;
    groups.set(key, { ...(groups.get(key) ?? refusal), count });
  }
  return [...groups.values()].sort((a, b) => b.count - a.count);
}

function sumAccounting(cells: readonly ReportCell[]): Accounting {
  const total = { offered: 0, completed: 0, shed: 0, rejected: 0, failed: 0, timedOut: 0, cancelled: 0, unfinished: 0 };
  for (const { accounting } of cells) {
    for (const key of ["offered", ...ACCOUNTS] as const) total[key] += accounting[key];
  }
  return total;
}

function byLatency<Value>(of: (name: LatencyName) => Value): Record<LatencyName, Value> {
  return Object.fromEntries(LATENCIES.map((name) => [name, of(name)])) as Record<LatencyName, Value>;
}

function meanOf(cells: readonly ReportCell[], of: (cell: ReportCell) => number | undefined): number | undefined {
  return weightedMean(cells, of, () => 1);
}

/** Undefined if a cell that has weight does not have the value. */
function weightedMean(
  cells: readonly ReportCell[],
  of: (cell: ReportCell) => number | undefined,
  weightOf: (cell: ReportCell) => number,
): number | undefined {
  let sum = 0;
  let weights = 0;
  for (const cell of cells) {
    const weight = weightOf(cell);
    if (weight === 0) continue;
    const value = of(cell);
    if (value === undefined) return undefined;
    sum += weight * value;
    weights += weight;
  }
  return weights === 0 ? undefined : sum / weights;
}
