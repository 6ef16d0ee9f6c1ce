import { UNAVAILABLE } from "../../core/request-record.ts";
import type { StatisticName } from "../../measure/summary.ts";
import type { CellLatencies, CellLevel, CellResult } from "../results/types.ts";

/** What a metric is, which decides how two values of it are compared: latencies mean nothing past saturation. */
export type MetricKind = "latency" | "rate" | "share" | "count";

/** One number of a cell. */
export interface Metric {
  readonly name: string;
  readonly title: string;
  readonly kind: MetricKind;
  readonly decimals: number;
  /** Undefined where it was not reached, had too few requests or is unavailable. */
  valueOf(cell: CellResult): number | undefined;
}

/** The metrics that studies publish. Latencies are those of completed requests, as studies have them. */
export const METRICS: readonly Metric[] = [
  latency("ttftP50Ms", "TTFT p50 ms", "ttftMs", "p50"),
  latency("ttftP95Ms", "TTFT p95 ms", "ttftMs", "p95"),
  latency("ttftP99Ms", "TTFT p99 ms", "ttftMs", "p99"),
  latency("ttftMeanMs", "TTFT mean ms", "ttftMs", "mean"),
  latency("itlP50Ms", "ITL p50 ms per gap", "itlMs", "p50", 1),
  latency("itlP95Ms", "ITL p95 ms per gap", "itlMs", "p95", 1),
  latency("tpotP50Ms", "ITL p50 ms per request", "tpotMs", "p50", 1),
  latency("tpotP95Ms", "ITL p95 ms per request", "tpotMs", "p95", 1),
  latency("e2eP50Ms", "E2E p50 ms", "e2eMs", "p50"),
  latency("e2eP95Ms", "E2E p95 ms", "e2eMs", "p95"),
  latency("e2eP99Ms", "E2E p99 ms", "e2eMs", "p99"),
  latency("e2eMeanMs", "E2E mean ms", "e2eMs", "mean"),
  rate("outputTokensPerSecond", "tokens/s", 0, (cell) => cell.outputTokensPerSecond),
  rate("requestsPerSecond", "requests/s", 2, (cell) => cell.requestsPerSecond),
  rate("servedPerSecond", "requests/s over the span", 2, (cell) => cell.requestsPerSecondOverSpan),
  share("hitShare", "cache hit", (cell) => (cell.cache.observed === UNAVAILABLE ? undefined : cell.cache.observed)),
  share("refusedShare", "turned away", ({ accounting: { offered, completed, unfinished } }) =>
    offered === 0 ? undefined : (offered - completed - unfinished) / offered,
  ),
  share("draftAcceptance", "drafts accepted", ({ workers }) => {
    const shares = workers.flatMap(({ draftAcceptance }) => (draftAcceptance === UNAVAILABLE ? [] : [draftAcceptance]));
    return shares.length === 0 ? undefined : shares.reduce((sum, value) => sum + value, 0) / shares.length;
  }),
  {
    name: "inflightSpread",
    title: "in-flight spread",
    kind: "count",
    decimals: 1,
    valueOf: ({ inflightSpread }) => (inflightSpread === UNAVAILABLE ? undefined : inflightSpread.mean),
  },
  {
    name: "inflightSpreadP95",
    title: "in-flight spread p95",
    kind: "count",
    decimals: 1,
    valueOf: ({ inflightSpread }) => (inflightSpread === UNAVAILABLE ? undefined : inflightSpread.p95),
  },
  {
    name: "inflightMeanSkew",
    title: "in-flight mean skew",
    kind: "count",
    decimals: 2,
    valueOf: ({ inflightMeanSkew }) => (inflightMeanSkew === UNAVAILABLE ? undefined : inflightMeanSkew),
  },
];

/** The metric of a name. */
export function findMetric(name: string): Metric | undefined {
  return METRICS.find((metric) => metric.name === name);
}

/** The runs of one arm at one level. */
export interface ArmAtLevel {
  readonly arm: string;
  readonly level: CellLevel;
  readonly cells: readonly CellResult[];
  /** Whether any run was. */
  readonly saturated: boolean;
}

/** The cells by arm and level, in the order in which they come. */
export function byArmAndLevel(cells: readonly CellResult[]): ArmAtLevel[] {
  const groups = new Map<string, CellResult[]>();
  for (const cell of cells) {
    const key = `${cell.arm} ${levelName(cell.level)}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [cell]);
    else group.push(cell);
  }
  return Array.from(groups.values(), (group) => ({
    arm: group[0].arm,
    level: group[0].level,
    cells: group,
    saturated: group.some(({ saturated }) => saturated),
  }));
}

/** The mean of a metric over runs; undefined if a run does not have it. */
export function meanOverRuns(cells: readonly CellResult[], metric: Metric): number | undefined {
  let sum = 0;
  for (const cell of cells) {
    const value = metric.valueOf(cell);
    if (value === undefined) return undefined;
    sum += value;
  }
  return cells.length === 0 ? undefined : sum / cells.length;
}

/** A level in a few characters. */
export function levelName({ concurrency, rateRps, speed, workers }: CellLevel): string {
  const parts = [];
  if (concurrency !== undefined) parts.push(`${concurrency} conv`);
  if (rateRps !== undefined) parts.push(`${rateRps}/s`);
  if (speed !== undefined) parts.push(`${speed}x`);
  return `${parts.join(" ")} on ${workers}`;
}

function latency(name: string, title: string, of: keyof CellLatencies, statistic: StatisticName, decimals = 0): Metric {
  return {
    name,
    title,
    kind: "latency",
    decimals,
    // Where a cell has snapshots, their mean: that is what a study that reads a dashboard has.
    valueOf: (cell) => (cell.snapshotMeans ?? cell)[of].completed[statistic] ?? undefined,
  };
}

function rate(name: string, title: string, decimals: number, valueOf: Metric["valueOf"]): Metric {
  return { name, title, kind: "rate", decimals, valueOf };
}

function share(name: string, title: string, valueOf: Metric["valueOf"]): Metric {
  return { name, title, kind: "share", decimals: 1, valueOf };
}
