import type { Accounting } from "../../core/accounts.ts";
import type { Slo } from "../../measure/slo.ts";
import type { Stationarity } from "../../measure/stationarity.ts";
import type { MeasurementWindow } from "../../measure/window.ts";
import type { CellCache, CellLatencies, CellResult, CellSnapshot, CellWorker, Refusal } from "../results/types.ts";
import type { LatencyPoints, PopulationReadings } from "./reading.ts";

/** The latencies that a report has tables of. */
export const LATENCIES = ["ttftMs", "tpotMs", "itlMs", "e2eMs"] as const;

export type LatencyName = (typeof LATENCIES)[number];

/** How hard a cell was driven; where nobody says how many workers there were, `workers` is undefined. */
export interface ReportLevel {
  readonly concurrency?: number | undefined;
  readonly rateRps?: number | undefined;
  readonly speed?: number | undefined;
  readonly workers: number | undefined;
}

/** A latency of one run: what was read, and the percentiles that are known of the completed requests. */
export interface CellLatency {
  readonly readings: PopulationReadings;
  readonly points: LatencyPoints;
}

/** A GPU as something outside the engines saw it. */
export interface GpuReading {
  readonly name: string;
  readonly busyShare: number | undefined;
  readonly memoryUsedBytes: number | undefined;
  readonly powerWatts: number | undefined;
}

/** One arm at one level in one run, whoever measured it; what its source does not tell is undefined. */
export interface ReportCell {
  /** Unique in a report. */
  readonly id: string;
  /** Number of the source it comes from. */
  readonly source: number;
  /** Its id in the records of that source. */
  readonly recordsId: string;
  readonly arm: string;
  readonly policy: string | undefined;
  readonly level: ReportLevel;
  readonly run: number;
  /** Runs of the arm at the level that are equal to this one number by number, and so are not counted again. */
  readonly repeats: readonly number[];
  readonly seed: number | undefined;
  readonly accounting: Accounting;
  /** Rows of a replayed trace that were never sent. */
  readonly unsentRows?: number | undefined;
  /** When a trace had nothing more to send, where that was long before the end of the window. */
  readonly ranOutSeconds?: number | undefined;
  readonly refusals: readonly Refusal[];
  readonly latencies: Readonly<Record<LatencyName, CellLatency>>;
  readonly rates: CellRates;
  readonly tokens: CellTokens;
  readonly goodputShare: number | undefined;
  readonly slo: Slo;
  readonly cache: CellCache | undefined;
  readonly workers: readonly CellWorker[];
  readonly gpus: readonly GpuReading[];
  readonly inflightSpread: CellResult["inflightSpread"] | undefined;
  readonly inflightMeanSkew: CellResult["inflightMeanSkew"] | undefined;
  readonly saturated: boolean | undefined;
  readonly stationarity: Stationarity | undefined;
  readonly scheduleLagMs: CellResult["scheduleLagMs"] | undefined;
  readonly snapshots: readonly CellSnapshot[];
  readonly snapshotMeans: CellLatencies | undefined;
  /** What only a live target tells: caches at the start, prompts, the client, what was looked at afterwards. */
  readonly live: Pick<CellResult, "cacheStart" | "prompts" | "client" | "checks">;
  /** What is measured of its records; undefined where there are none. */
  readonly window: MeasurementWindow | undefined;
}

/** Per second; what the source does not tell is undefined. */
export interface CellRates {
  readonly offeredPerSecond: number | undefined;
  readonly requestsPerSecond: number | undefined;
  readonly outputTokensPerSecond: number | undefined;
  /** From the first request to the last answer: AIPerf's throughput. */
  readonly requestsPerSecondOverSpan: number | undefined;
  readonly outputTokensPerSecondOverSpan: number | undefined;
}

export interface CellTokens {
  /** Of all that was offered. */
  readonly promptMean: number | undefined;
  readonly outputMean: number | undefined;
  /** Prompts of the requests that completed, and of those that did not. */
  readonly completedPromptMean: number | undefined;
  readonly lostPromptMean: number | undefined;
  readonly outputTotal: number | undefined;
}

/** The run, and those that it stands for. */
export function runsOf({ run, repeats }: ReportCell): readonly number[] {
  return [run, ...repeats];
}

/** The load of a level without its workers: what both arms of a comparison must have had. */
export function loadKey({ concurrency, rateRps, speed }: ReportLevel): string {
  return `${concurrency ?? ""}|${rateRps ?? ""}|${speed ?? ""}`;
}

export function levelKey(level: ReportLevel): string {
  return `${loadKey(level)}|${level.workers ?? ""}`;
}

/** A level in a few words. */
export function levelTitle({ concurrency, rateRps, speed, workers }: ReportLevel): string {
  const load =
    concurrency !== undefined
      ? `${concurrency} conversations`
      : rateRps !== undefined
        ? // Of conversations or of single requests: what begins, not what is asked in all.
          `${rateRps} arrivals/s`
        : speed !== undefined
          ? speed === 1
            ? "the trace's own times"
            : `the trace at ${speed} ×`
          : "load not stated";
  return workers === undefined ? load : `${load}, ${workers} ${workers === 1 ? "worker" : "workers"}`;
}

/** Levels by workers, then by load. */
export function compareLevels(a: ReportLevel, b: ReportLevel): number {
  const order = (level: ReportLevel): number[] => [
    level.workers ?? 0,
    level.concurrency ?? 0,
    level.rateRps ?? 0,
    level.speed ?? 0,
  ];
  const [x, y] = [order(a), order(b)];
  const at = x.findIndex((value, i) => value !== y[i]);
  return at < 0 ? 0 : x[at] - y[at];
}
