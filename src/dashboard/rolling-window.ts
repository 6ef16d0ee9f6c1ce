import { ACCOUNTS, type Account, type Accounting } from "../core/accounts.ts";

/** One latency over the last seconds; null where there are too few requests to say. */
export interface LatencyWindow {
  readonly n: number;
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

/** Everything that is shown of the last seconds, 60 unless told. */
export interface RollingWindow {
  readonly windowSeconds: number;
  readonly ttftMs: LatencyWindow;
  readonly tpotMs: LatencyWindow;
  readonly itlMs: LatencyWindow;
  readonly e2eMs: LatencyWindow;
  /** Requests that ended, by second. */
  readonly requestsPerSecond: number;
  readonly outputTokensPerSecond: number;
  /** Cached tokens among the prompt tokens of those that ended; null where the endpoint does not tell. */
  readonly hitShare: number | null;
  /** Ended without a whole answer; null while nothing has ended. */
  readonly errorShare: number | null;
  readonly errorsByKind: Readonly<Record<string, number>>;
  readonly inFlight: number;
  /** A system that stalls completes nothing: its latencies freeze, this grows. */
  readonly oldestInFlightMs: number | null;
}

/** Upper limits on the p95 of all requests, failed ones included. */
export interface SloLimits {
  readonly ttftMs?: number | undefined;
  readonly tpotMs?: number | undefined;
  readonly e2eMs?: number | undefined;
}

export type SloState = "met" | "missed" | "unknown";

/** More failures than this, and the p95 over all requests is a request that never ended. */
const MOST_ERRORS_SHARE = 0.05;
/** Requests from which on a p95 means something; as in src/measure/summary.ts. */
const FEWEST_FOR_P95 = 20;

/** Whether one latency keeps its limit. */
export function isSloMet(latency: LatencyWindow, limitMs: number | undefined, errorShare: number | null): SloState {
  if (limitMs === undefined) return "unknown";
  if ((errorShare ?? 0) > MOST_ERRORS_SHARE) return "missed";
  if (latency.p95 === null || latency.n < FEWEST_FOR_P95) return "unknown";
  return latency.p95 <= limitMs ? "met" : "missed";
}

/** Whether every limit is kept: missed if one is, unknown if one cannot be told. */
export function sloState(window: RollingWindow, slo: SloLimits): SloState {
  const { ttftMs, tpotMs, e2eMs, errorShare } = window;
  const states = (
    [
      [ttftMs, slo.ttftMs],
      [tpotMs, slo.tpotMs],
      [e2eMs, slo.e2eMs],
    ] as const
  )
    .filter(([, limitMs]) => limitMs !== undefined)
    .map(([latency, limitMs]) => isSloMet(latency, limitMs, errorShare));
  if (states.includes("missed")) return "missed";
  return states.length === 0 || states.includes("unknown") ? "unknown" : "met";
}

/** How people call the accounts, in the order in which they are shown. */
export const ACCOUNT_NAMES: Readonly<Record<Account, string>> = {
  completed: "completed",
  shed: "shed",
  rejected: "rejected",
  failed: "failed",
  timedOut: "timed out",
  cancelled: "cancelled",
  unfinished: "in flight",
};

/** What the accounts add up to; equal to `offered` unless something is wrong. */
export function accountingSum(accounting: Accounting): number {
  return ACCOUNTS.reduce((sum, account) => sum + accounting[account], 0);
}
