/**
 * What the page and its server say to each other. The only file of src that the page imports: types and pure functions,
 * nothing that needs a server or a browser.
 */
import type { Accounting } from "../core/accounts.ts";
import type { ParameterSpec, PolicyParameters } from "../core/policy/types.ts";
import type { Baselines } from "./baselines.ts";
import type { DecisionView } from "./decision-view.ts";
import type { HistoryRow } from "./history.ts";
import type { Mark } from "./marks.ts";
import type { RollingWindow, SloLimits } from "./rolling-window.ts";

export type { Accounting } from "../core/accounts.ts";
export type { ParameterSpec, PolicyParameters } from "../core/policy/types.ts";
export {
  type BaselineMetric,
  type BaselineReading,
  type BaselineRole,
  type Baselines,
  baselineOf,
  lookUpBaseline,
} from "./baselines.ts";
export { type DecisionView, whyChosen } from "./decision-view.ts";
export { HISTORY_COLUMNS, HISTORY_MS, type HistoryColumn, historyRow, type HistoryRow } from "./history.ts";
export type { Mark } from "./marks.ts";
export {
  ACCOUNT_NAMES,
  accountingSum,
  isSloMet,
  type LatencyWindow,
  type RollingWindow,
  type SloLimits,
  type SloState,
  sloState,
} from "./rolling-window.ts";

export const FEED_PATH = "/api/feed";
export const COMMAND_PATH = "/api/commands";
export const LEAST_CONCURRENCY = 1;
export const MOST_CONCURRENCY = 300;
/** Requests in the window from which on a p99 is shown as one. */
export const FEWEST_FOR_P99 = 1000;

/** What of the page there is for this endpoint; what is not is explained instead of shown empty. */
export interface Capabilities {
  /** A gateway's admin API is there: workers, decisions, policy. */
  readonly fleet: boolean;
  readonly resetCaches: boolean;
  /** Workers are processes of ours that can be ended and started again. */
  readonly workerProcesses: boolean;
}

/** Said once to every page that connects. */
export interface Hello {
  /** Changes when the server starts anew: a page from before must start over. */
  readonly serverId: string;
  readonly version: string;
  readonly title: string;
  readonly about: string;
  /** Where the load goes. */
  readonly targetUrl: string;
  readonly capabilities: Capabilities;
  /** What the gateway could route by; empty without one. */
  readonly policies: readonly PolicyChoice[];
  readonly slo: SloLimits;
  readonly baselines: Baselines;
  readonly history: readonly HistoryRow[];
  readonly snapshot: Snapshot;
}

/** Everything that changes, several times a second. */
export interface Snapshot {
  /** Of the server's wall clock. */
  readonly atMs: number;
  readonly load: LoadView;
  readonly window: RollingWindow;
  readonly fleet: FleetView | null;
  /** Why the gateway cannot be asked; null while it can, and where there is none. */
  readonly fleetProblem: string | null;
  readonly marks: readonly Mark[];
}

export type LoadState = "stopped" | "running" | "stopping";

/** The load generator. */
export interface LoadView {
  readonly state: LoadState;
  /** Null for a load that follows a schedule. */
  readonly concurrency: number | null;
  /** Every request so far by how it ended; they add up. */
  readonly accounting: Accounting;
  /** Why the client itself would be the bottleneck; empty while it is not. */
  readonly clientProblems: readonly string[];
}

/** What a gateway tells of itself. */
export interface FleetView {
  readonly policy: string;
  readonly parameters: PolicyParameters;
  readonly workers: readonly WorkerView[];
  /** The newest first. */
  readonly decisions: readonly DecisionView[];
  /** Requests that wait in the router. */
  readonly queued: number;
  /** False while the admin API does not answer; the rest is as it last was. */
  readonly isAnswering: boolean;
}

/** A policy that could be in force, with its knobs. */
export interface PolicyChoice {
  readonly policy: string;
  readonly about: string;
  readonly parameters: Readonly<Record<string, ParameterSpec>>;
}

export type WorkerState = "ready" | "catching-up" | "unhealthy" | "draining" | "dead";

/** One worker; null where nobody tells. */
export interface WorkerView {
  readonly name: string;
  readonly url: string;
  readonly state: WorkerState;
  /** When it came to be in that state. */
  readonly sinceMs: number;
  readonly running: number | null;
  readonly queued: number | null;
  readonly batchSlots: number | null;
  /** Share of the KV pool that running requests hold. */
  readonly kvShare: number | null;
  readonly hitShare: number | null;
  readonly requestsPerSecond: number | null;
  /** How far the router's view of its cache can be trusted. */
  readonly indexState: string | null;
}

/** What a page may ask for. */
export type Command =
  | { readonly kind: "set-concurrency"; readonly concurrency: number }
  | { readonly kind: "start" }
  | { readonly kind: "stop" }
  | { readonly kind: "set-policy"; readonly policy: string; readonly parameters?: PolicyParameters | undefined }
  | { readonly kind: "reset-caches" }
  | { readonly kind: "end-worker"; readonly worker: string }
  | { readonly kind: "start-worker"; readonly worker: string };

/** The answer to a command. */
export type CommandReply = { readonly ok: true } | { readonly ok: false; readonly message: string };
