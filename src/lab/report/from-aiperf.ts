import { type Account, ACCOUNTS, type Accounting } from "../../core/accounts.ts";
import { NS_PER_MS } from "../../core/clock.ts";
import type { RequestRecord } from "../../core/request-record.ts";
import type { Slo } from "../../measure/slo.ts";
import type { MeasurementWindow } from "../../measure/window.ts";
import { accountOfError } from "../../wire/aiperf/error.ts";
import { type AiperfMetric, inMilliseconds } from "../../wire/aiperf/metric.ts";
import type { AiperfGpu, AiperfSummary } from "../../wire/aiperf/summary-file.ts";
import { buildCell } from "../results/build-cell.ts";
import type { CellResult, Refusal } from "../results/types.ts";
import type { CellLatency, CellRates, CellTokens, GpuReading, ReportCell, ReportLevel } from "./cell.ts";
import { cellOfResult } from "./from-results.ts";
import { readingsOfPoints, UNKNOWN_POPULATIONS } from "./reading.ts";

/** Where a run of AIPerf stands in a report. */
export interface AiperfPlace {
  readonly source: number;
  readonly arm: string;
  readonly level: ReportLevel;
  readonly run: number;
  /** Limits that requests are held against. */
  readonly slo: Slo;
}

/** A run of AIPerf as a cell, from its summary alone: percentiles are known, requests are not. */
export function cellOfSummary(summary: AiperfSummary, place: AiperfPlace): ReportCell {
  const accounting = accountingOf(summary);
  const lost = accounting.offered - accounting.completed;
  const latency = (tag: string): CellLatency => latencyOf(summary.metrics.get(tag), lost, accounting.completed);
  const id = `${place.arm}/run-${place.run}`;
  return {
    id: `${place.source}:${id}`,
    source: place.source,
    recordsId: id,
    arm: place.arm,
    policy: undefined,
    level: place.level,
    run: place.run,
    repeats: [],
    seed: undefined,
    accounting,
    refusals: refusalsOf(summary),
    latencies: {
      ttftMs: latency("time_to_first_token"),
      // AIPerf calls the time per output token its inter-token latency; its gaps are the inter-chunk latency.
      tpotMs: latency("inter_token_latency"),
      itlMs: latency("inter_chunk_latency"),
      e2eMs: latency("request_latency"),
    },
    rates: ratesOf(summary),
    tokens: tokensOf(summary, accounting),
    goodputShare: undefined,
    slo: place.slo,
    cache: undefined,
    workers: [],
    gpus: summary.gpus.map(gpuOf),
    inflightSpread: undefined,
    inflightMeanSkew: undefined,
    saturated: undefined,
    stationarity: undefined,
    scheduleLagMs: undefined,
    snapshots: [],
    snapshotMeans: undefined,
    live: {},
    window: undefined,
  };
}

/** A run of AIPerf as a cell, from its records; what only the summary knows is taken from there. */
export function cellOfRecords(
  records: readonly RequestRecord[],
  summary: AiperfSummary | undefined,
  place: AiperfPlace,
): ReportCell {
  const window = wholeWindow(records);
  const { workers, ...load } = place.level;
  const result = buildCell({
    arm: place.arm,
    policy: place.arm,
    level: { ...load, workers: workers ?? 1 },
    run: place.run,
    seed: 0,
    records,
    window,
    slo: place.slo,
    snapshots: 0,
    workers: [],
    cacheCeiling: "unavailable",
  });
  const cell = cellOfResult(result, place.source);
  const prompts = promptMeans(records);
  const rates = isSentAtOnce(result, window) ? { ...cell.rates, ...UNKNOWN_WINDOW_RATES } : cell.rates;
  return {
    ...cell,
    policy: undefined,
    level: place.level,
    seed: undefined,
    window,
    rates: summary === undefined ? rates : { ...rates, ...definedRates(ratesOf(summary)) },
    tokens: { ...cell.tokens, ...prompts },
    gpus: summary?.gpus.map(gpuOf) ?? [],
  };
}

const UNKNOWN_WINDOW_RATES = {
  offeredPerSecond: undefined,
  requestsPerSecond: undefined,
  outputTokensPerSecond: undefined,
} as const;

/**
 * Whether all was sent before a usual answer was there, as in a batch or a single request: the window, which ends with the
 * last request, is then over before the work has begun, and what was served in it says nothing of the server.
 */
function isSentAtOnce({ e2eMs }: CellResult, { startNs, endNs }: MeasurementWindow): boolean {
  return endNs - startNs < (e2eMs.completed.mean ?? 0) * NS_PER_MS;
}

/** Requests that a summary speaks of. */
export function accountingOf(summary: AiperfSummary): Accounting {
  const accounts: Record<Account, number> = {
    completed: count(summary, "request_count"),
    shed: 0,
    rejected: 0,
    failed: 0,
    timedOut: 0,
    cancelled: 0,
    unfinished: 0,
  };
  let named = 0;
  for (const group of summary.errors) {
    accounts[accountOfError(group.error)] += group.count;
    named += group.count;
  }
  // Errors that are counted and not described are failures all the same.
  accounts.failed += Math.max(0, count(summary, "error_request_count") - named);
  const offered = ACCOUNTS.reduce((sum, account) => sum + accounts[account], 0);
  return { offered, ...accounts };
}

function refusalsOf(summary: AiperfSummary): Refusal[] {
  const named = summary.errors.reduce((sum, group) => sum + group.count, 0);
  const unnamed = Math.max(0, count(summary, "error_request_count") - named);
  const groups = summary.errors.map(({ error, count: requests }): Refusal => ({
    account: accountOfError(error),
    status: error.code ?? null,
    code: null,
    message: error.message === "" ? (error.type ?? "") : error.message,
    count: requests,
  }));
  if (unnamed > 0)
    groups.push({ account: "failed", status: null, code: null, message: "not described", count: unnamed });
  return groups.sort((a, b) => b.count - a.count);
}

function latencyOf(metric: AiperfMetric | undefined, unreached: number, completed: number): CellLatency {
  const inMs = metric === undefined ? undefined : inMilliseconds(metric);
  if (inMs?.avg === undefined) {
    const points = { n: 0, unreached, mean: undefined, points: [] };
    return { readings: UNKNOWN_POPULATIONS, points };
  }
  const ends: [number, number][] = [];
  if (inMs.min !== undefined) ends.push([0, inMs.min]);
  ends.push(...inMs.percentiles.map(([share, value]): [number, number] => [share, value]));
  if (inMs.max !== undefined) ends.push([1, inMs.max]);
  // Files before schema 1.1 have no count; every completed request has a latency.
  const points = { n: inMs.count ?? completed, unreached, mean: inMs.avg, points: ends };
  return { readings: readingsOfPoints([points]), points };
}

function ratesOf({ metrics }: AiperfSummary): CellRates {
  const average = (tag: string): number | undefined => metrics.get(tag)?.avg;
  return {
    offeredPerSecond: undefined,
    requestsPerSecond: undefined,
    outputTokensPerSecond: undefined,
    requestsPerSecondOverSpan: average("request_throughput"),
    outputTokensPerSecondOverSpan: average("output_token_throughput"),
  };
}

function definedRates(rates: CellRates): Partial<CellRates> {
  return Object.fromEntries(Object.entries(rates).filter(([, value]) => value !== undefined));
}

function tokensOf(summary: AiperfSummary, accounting: Accounting): CellTokens {
  const { metrics } = summary;
  const completedPromptMean = metrics.get("input_sequence_length")?.avg;
  const lostPromptMean = metrics.get("error_isl")?.avg;
  const lost = accounting.offered - accounting.completed;
  const isKnown = completedPromptMean !== undefined && (lost === 0 || lostPromptMean !== undefined);
  const promptTotal = (completedPromptMean ?? 0) * accounting.completed + (lostPromptMean ?? 0) * lost;
  const outputMean = metrics.get("output_sequence_length")?.avg;
  return {
    promptMean: isKnown && accounting.offered > 0 ? promptTotal / accounting.offered : undefined,
    outputMean,
    completedPromptMean,
    lostPromptMean,
    outputTotal:
      metrics.get("total_osl")?.avg ??
      metrics.get("total_output_tokens")?.avg ??
      (outputMean === undefined ? undefined : outputMean * accounting.completed),
  };
}

function promptMeans(records: readonly RequestRecord[]): Pick<CellTokens, "completedPromptMean" | "lostPromptMean"> {
  const mean = (of: readonly RequestRecord[]): number | undefined =>
    of.length === 0 ? undefined : of.reduce((sum, { promptTokens }) => sum + promptTokens, 0) / of.length;
  return {
    completedPromptMean: mean(records.filter(({ account }) => account === "completed")),
    lostPromptMean: mean(records.filter(({ account }) => account !== "completed")),
  };
}

/** A whole run: AIPerf waits for every answer it measures. */
function wholeWindow(records: readonly RequestRecord[]): MeasurementWindow {
  let startNs = Infinity;
  let endNs = -Infinity;
  let lastNs = 0;
  for (const record of records) {
    startNs = Math.min(startNs, record.intendedNs);
    endNs = Math.max(endNs, record.intendedNs + 1);
    lastNs = Math.max(lastNs, record.endNs ?? 0);
  }
  return { startNs, endNs, drainNs: Math.max(0, lastNs - endNs) };
}

function gpuOf({ name, metrics }: AiperfGpu): GpuReading {
  const scaled = (tags: readonly string[], factors: Readonly<Record<string, number>>): number | undefined => {
    const metric = tags.map((tag) => metrics.get(tag)).find((found) => found?.avg !== undefined);
    const factor = metric === undefined ? undefined : factors[metric.unit];
    return metric?.avg === undefined || factor === undefined ? undefined : metric.avg * factor;
  };
  return {
    name,
    busyShare: scaled(["gpu_utilization", "nvidia_gpu_utilization", "amd_gpu_utilization"], { "%": 0.01, ratio: 1 }),
    memoryUsedBytes: scaled(["gpu_memory_used", "nvidia_gpu_memory_used", "amd_gpu_memory_used"], {
      GB: 1e9,
      MB: 1e6,
      GiB: 2 ** 30,
      MiB: 2 ** 20,
    }),
    powerWatts: scaled(["gpu_power_usage", "nvidia_gpu_power_usage", "amd_gpu_power_usage"], { W: 1 }),
  };
}

function count({ metrics }: AiperfSummary, tag: string): number {
  return Math.round(metrics.get(tag)?.avg ?? 0);
}
