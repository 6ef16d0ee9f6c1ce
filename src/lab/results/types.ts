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
  /** Where it ran: `local`, or an address; absent for the simulated twin. */
  readonly target?: string | undefined;
  /** What the arms differ in, as they were found; absent for the twin, whose arms differ in what `config` says. */
  readonly comparability?: Comparability | undefined;
  /** What was found of each arm before it was measured. */
  readonly arms?: readonly ArmFacts[] | undefined;
}

/** Whether the arms of a live experiment differ in nothing but what was declared. */
export interface Comparability {
  readonly verdict: "comparable" | "not-comparable";
  /** Settings in which they were meant to differ; a `*` stands for anything. */
  readonly declared: readonly string[];
  /** Why they cannot be compared, one sentence each. */
  readonly reasons: readonly string[];
  readonly differences: readonly ArmDifference[];
}

/** A setting that one arm has otherwise than the first. */
export interface ArmDifference {
  readonly arm: string;
  readonly against: string;
  readonly setting: string;
  readonly value: string;
  readonly againstValue: string;
  readonly isDeclared: boolean;
}

/** An arm as it was found before it was measured. */
export interface ArmFacts {
  readonly arm: string;
  readonly checks: readonly Check[];
  /** The configuration in force, flat. */
  readonly settings: Readonly<Record<string, string>>;
}

/** One thing that was looked at. */
export interface Check {
  /** Stable, such as `kv-events`. */
  readonly code: string;
  readonly status: "passed" | "failed" | "unavailable";
  readonly detail: string;
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
  /**
   * Rows of a replayed trace that were never sent: due after the window, or behind a turn that did not complete. Absent where
   * all were.
   */
  readonly unsentRows?: number | undefined;
  /** When a trace had nothing more to send, where that was long before the end of the window: rates are of all of it. */
  readonly ranOutSeconds?: number | undefined;
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
  /** What only a live target has. */
  readonly warmUp?: { readonly seconds: number; readonly requests: number } | undefined;
  readonly cacheStart?: CacheStart | undefined;
  readonly prompts?: PromptProof | undefined;
  readonly client?: ClientFigures | undefined;
  /** What was looked at after the cell; what failed is a label of its numbers. */
  readonly checks?: readonly Check[] | undefined;
  /** Why the cell must not be used; absent if it may. */
  readonly voided?: readonly string[] | undefined;
}

/** What caches held at the start of a cell, and how that was brought about. */
export interface CacheStart {
  readonly state: "cold" | "primed" | "carried-over";
  readonly enforcedBy: "restart" | "reset" | "hook" | "pass" | "load" | "nothing";
}

/** What was sent, so that two arms can be shown to have got the same. */
export interface PromptProof {
  /** Requests of the window. */
  readonly requests: number;
  /** Over their ids and prompts, in the order of ids. */
  readonly digest: string;
  /** Of all prompts of the cell: those that a cell before it, of the same run, has sent too, and those of them that were equal. */
  readonly sentBefore: number;
  readonly equalToBefore: number;
}

/** Whether the client was fast enough for what it measured. */
export interface ClientFigures {
  readonly verdict: "ok" | "bottleneck" | "unknown";
  readonly reasons: readonly string[];
  readonly scheduleLagP99Ms: number;
  readonly loopDelayP99Ms: number;
  readonly loopUtilisation: number;
}

/** Shares of prompt tokens: possible with an endless cache, expected by the router, found by the engine. */
export interface CellCache extends CacheShares {
  readonly ceiling: number | Unavailable;
  /** Who said what was predicted and found, on live targets. */
  readonly predictedSource?: "gateway-metrics" | undefined;
  readonly observedSource?: "usage" | "dynamo_frontend_cached_tokens" | undefined;
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
  /** What a sampler has seen besides; absent where none looked. */
  readonly sampled?: SampledWorker | undefined;
}

/** Samples of one worker at a fixed interval, over the window. */
export interface SampledWorker {
  readonly samples: number;
  readonly busyShareMin: number | Unavailable;
  readonly busyShareMax: number | Unavailable;
  readonly memoryUsedBytes: number | Unavailable;
  readonly memoryTotalBytes: number | Unavailable;
  readonly powerWatts: number | Unavailable;
  /** How often it began anew. */
  readonly restarts: number | Unavailable;
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
  /** Folder of the experiment's file, beside which its trace may lie; absent for presets. */
  readonly experimentFolder?: string | undefined;
  /** Wall time of each cell by its id. */
  readonly cellSeconds: { readonly [cell: string]: number };
  /** Cells in the order in which they were run, where that is another than in the file. */
  readonly order?: readonly string[] | undefined;
  /** When the run went on after it had been cut short, and how many cells were finished by then. */
  readonly resumed?: readonly { readonly at: string; readonly finishedCells: number }[] | undefined;
}
