import type { ShedCode } from "../../core/admission/types.ts";

import type { Unavailable } from "../../core/request-record.ts";
import type { Account, Accounting } from "../../core/accounts.ts";
import type { CacheShares } from "../../measure/cache-shares.ts";
import type { LoadBalance, WorkerInFlight } from "../../measure/in-flight.ts";
import type { ServedRates } from "../../measure/served-rates.ts";
import type { Slo, SloVerdict } from "../../measure/slo.ts";
import type { Stationarity } from "../../measure/stationarity.ts";
import type { PopulationSummaries } from "../../measure/summary.ts";

/** Raised when a reader of the old form would misread the new one; new fields alone do not raise it. */
export const RESULTS_SCHEMA_VERSION = 1;

/** Anything that JSON can say. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** The content of results.json: equal runs give equal bytes, so nothing of host or date is in it. */
export interface ResultsFile {
  readonly schemaVersion: typeof RESULTS_SCHEMA_VERSION;
  /** Name of the experiment or preset. */
  readonly experiment: string;
  /** The whole configuration with every default filled in. */
  readonly config: { readonly [key: string]: Json };
  /** One entry per arm × level × run. */
  readonly cells: readonly CellResult[];
}

/** How hard a cell was driven: one of the first three, and the number of workers. */
export interface CellLevel {
  readonly concurrency?: number | undefined;
  readonly rateRps?: number | undefined;
  /** Factor on the speed of a recorded schedule. */
  readonly speed?: number | undefined;
  readonly workers: number;
}

/** The latencies that are summarised; milliseconds. */
export interface CellLatencies {
  readonly ttftMs: PopulationSummaries;
  readonly tpotMs: PopulationSummaries;
  readonly itlMs: PopulationSummaries;
  readonly e2eMs: PopulationSummaries;
}

/** What one arm did at one level in one run. */
export interface CellResult extends CellLatencies {
  /** Arm, level and run in one text; lines of records.jsonl.gz name their cell by it. */
  readonly id: string;
  readonly arm: string;
  readonly policy: string;
  readonly level: CellLevel;
  readonly run: number;
  readonly seed: number;
  readonly window: { readonly startSeconds: number; readonly endSeconds: number; readonly drainSeconds: number };
  readonly accounting: Accounting;
  /** TTFT from the moment of sending; differs from `ttftMs` by what the client was late. */
  readonly wireTtftMs: PopulationSummaries;
  /** How late the client sent, over all requests that were sent. */
  readonly scheduleLagMs: PopulationSummaries["completed"];
  /** Completed requests that `itlMs` does not cover. */
  readonly requestsWithoutGaps: number;
  readonly outputTokensPerSecond: number;
  readonly requestsPerSecond: number;
  readonly offeredPerSecond: number;
  readonly requestsPerSecondOverSpan: number;
  readonly outputTokensPerSecondOverSpan: number;
  /** Means of the prompts offered and of the answers completed; null of nothing. */
  readonly promptTokensMean: number | null;
  readonly outputTokensMean: number | null;
  readonly goodputShare: number;
  readonly slo: { readonly limits: Slo; readonly verdict: SloVerdict };
  readonly cache: CellCache;
  readonly workers: readonly CellWorker[];
  readonly inflightSpread: LoadBalance["spread"] | Unavailable;
  /** Largest worker mean of requests in flight over the mean of all workers. */
  readonly inflightMeanSkew: number | Unavailable;
  readonly saturated: boolean;
  readonly stationarity: Stationarity;
  /** Why requests did not complete, most frequent first. */
  readonly refusals: readonly Refusal[];
  readonly snapshots: readonly CellSnapshot[];
  /** Means of the snapshots' statistics, as studies publish them that read a dashboard; absent without snapshots. */
  readonly snapshotMeans?: CellLatencies | undefined;
}

/** Shares of prompt tokens: possible with an endless cache, expected by the router, found by the engine. */
export interface CellCache extends CacheShares {
  readonly ceiling: number | Unavailable;
}

/** What only the target can tell of a worker; `unavailable` where it cannot. */
export interface WorkerStats {
  readonly worker: string;
  /** Share of the window in which it computed. */
  readonly busyShare: number | Unavailable;
  readonly queueMax: number | Unavailable;
  /** Mean and largest share of the KV pool in use. */
  readonly kvOccupancy: number | Unavailable;
  readonly kvOccupancyMax: number | Unavailable;
  /** Blocks evicted and requests preempted in the window. */
  readonly evictions: number | Unavailable;
  readonly preemptions: number | Unavailable;
  /** Share of drafted tokens that were accepted; unavailable without speculative decoding. */
  readonly draftAcceptance: number | Unavailable;
}

type MaybeUnavailable<Fields> = { readonly [Name in keyof Fields]: Fields[Name] | Unavailable };

export interface CellWorker extends WorkerStats, MaybeUnavailable<Omit<WorkerInFlight, "worker">> {}

/** Requests that ended alike without completing. */
export interface Refusal {
  readonly account: Exclude<Account, "completed">;
  /** HTTP status, where there was one. */
  readonly status: number | null;
  readonly code: ShedCode | null;
  readonly message: string;
  readonly count: number;
}

/** One part of a window, as a study that reads a dashboard at intervals would have it. */
export interface CellSnapshot extends CellLatencies, Pick<ServedRates, "requestsPerSecond" | "outputTokensPerSecond"> {
  readonly startSeconds: number;
  readonly endSeconds: number;
  readonly goodputShare: number;
  readonly cache: CacheShares;
}

/** The content of provenance.json: all that differs between two equal runs. */
export interface Provenance {
  readonly schemaVersion: typeof RESULTS_SCHEMA_VERSION;
  readonly host: { readonly [key: string]: Json };
  /** Of Warmpath, Node and whatever else took part. */
  readonly versions: { readonly [name: string]: string };
  /** ISO 8601 in UTC. */
  readonly startedAt: string;
  readonly finishedAt: string | null;
  /** The command that repeats the run. */
  readonly command: string;
  /** Wall time of each cell by its id. */
  readonly cellSeconds: { readonly [cell: string]: number };
}
