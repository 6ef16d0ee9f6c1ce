/** Cells and groups for tests of single files: nothing is known of them but what a test says. */
import type { Accounting } from "../../core/accounts.ts";
import type { StatisticName } from "../../measure/summary.ts";
import { LATENCIES, type CellLatency, type LatencyName, type ReportCell } from "./cell.ts";
import type { LevelComparison } from "./comparisons.ts";
import { differenceOf } from "./differences.ts";
import { type ArmAtLevel, poolCells } from "./groups.ts";
import { judgedMetrics } from "./judged-metrics.ts";
import { byStatistic, readingOf, UNKNOWN_POPULATIONS, type Readings } from "./reading.ts";
import { judge, verdictAt } from "./verdict.ts";

/** Statistics of a latency; Infinity is one that was not reached. */
type Numbers = Partial<Record<StatisticName, number>>;

const REQUESTS = 1000;

export function accountingOf(completed: number, offered: number = REQUESTS): Accounting {
  const failed = offered - completed;
  return { offered, completed, shed: 0, rejected: 0, failed, timedOut: 0, cancelled: 0, unfinished: 0 };
}

/** A latency with the same statistics in both populations, unless others are given for the offered one. */
export function latencyOf(completed: Numbers, offered: Numbers = completed): CellLatency {
  const readings = (numbers: Numbers): Readings => byStatistic(REQUESTS, (name) => readingOf(numbers[name]));
  return {
    readings: { completed: readings(completed), offered: readings(offered) },
    points: { n: REQUESTS, unreached: 0, mean: completed.mean, points: [] },
  };
}

const UNKNOWN_LATENCY: CellLatency = {
  readings: UNKNOWN_POPULATIONS,
  points: { n: 0, unreached: 0, mean: undefined, points: [] },
};

/** What a test says of a cell; of its latencies those that it needs. */
export type CellChanges = Partial<Omit<ReportCell, "latencies">> & {
  readonly latencies?: Partial<Record<LatencyName, CellLatency>>;
};

export function cellOf(arm: string, changes: CellChanges = {}): ReportCell {
  const { latencies, ...rest } = changes;
  const all = LATENCIES.map((name) => [name, latencies?.[name] ?? UNKNOWN_LATENCY] as const);
  return {
    id: `${arm}-${rest.run ?? 1}`,
    source: 0,
    recordsId: arm,
    arm,
    policy: undefined,
    level: { concurrency: 8, workers: 2 },
    run: 1,
    repeats: [],
    seed: undefined,
    accounting: accountingOf(REQUESTS),
    refusals: [],
    rates: {
      offeredPerSecond: undefined,
      requestsPerSecond: undefined,
      outputTokensPerSecond: undefined,
      requestsPerSecondOverSpan: undefined,
      outputTokensPerSecondOverSpan: undefined,
    },
    tokens: {
      promptMean: undefined,
      outputMean: undefined,
      completedPromptMean: undefined,
      lostPromptMean: undefined,
      outputTotal: undefined,
    },
    goodputShare: undefined,
    slo: {},
    cache: undefined,
    workers: [],
    gpus: [],
    inflightSpread: undefined,
    inflightMeanSkew: undefined,
    saturated: undefined,
    stationarity: undefined,
    scheduleLagMs: undefined,
    snapshots: [],
    snapshotMeans: undefined,
    live: { cacheStart: undefined, prompts: undefined, client: undefined, checks: undefined },
    window: undefined,
    ...rest,
    latencies: Object.fromEntries(all) as Record<LatencyName, CellLatency>,
  };
}

/** Cells of one arm at one level as a group, without records. */
export function groupOf(...cells: readonly ReportCell[]): ArmAtLevel {
  const groups = poolCells(
    cells,
    () => undefined,
    () => undefined,
  );
  if (groups.length !== 1) throw new Error("cells of one arm at one level are one group");
  return groups[0];
}

/** An arm against a baseline at one level, every difference taken for shown. */
export function levelOf(baseline: ReportCell, arm: ReportCell): LevelComparison {
  const [x, y] = [groupOf(baseline), groupOf(arm)];
  const differences = judgedMetrics({}, false).map((metric) => judge(differenceOf(metric, x, y), true));
  const verdict = verdictAt(x, y, differences, []);
  return { level: arm.level, baseline: x, arm: y, differences, obstacles: [], paired: undefined, verdict };
}
