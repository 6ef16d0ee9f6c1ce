/** Stand-ins for the tests of this folder. */
import type { FeedIdentity } from "./feed.ts";
import type { RollingWindow } from "./rolling-window.ts";
import type { LoadSource } from "./sources.ts";

export const IDENTITY: FeedIdentity = {
  serverId: "server",
  version: "0.0.0",
  title: "title",
  about: "about",
  targetUrl: "http://127.0.0.1:8000",
};

const NOTHING = { n: 0, p50: null, p95: null, p99: null };

/** The last minute of a load that does nothing. */
export const QUIET_WINDOW: RollingWindow = {
  windowSeconds: 60,
  ttftMs: NOTHING,
  tpotMs: NOTHING,
  itlMs: NOTHING,
  e2eMs: NOTHING,
  requestsPerSecond: 0,
  outputTokensPerSecond: 0,
  hitShare: null,
  errorShare: null,
  errorsByKind: {},
  inFlight: 0,
  oldestInFlightMs: null,
};

/** A load that does nothing and writes down what it was told. */
export function fakeLoad(): LoadSource & { readonly calls: readonly string[] } {
  const calls: string[] = [];
  return {
    calls,
    view: () => ({
      state: "running",
      concurrency: 10,
      accounting: {
        offered: 0,
        completed: 0,
        shed: 0,
        rejected: 0,
        failed: 0,
        timedOut: 0,
        cancelled: 0,
        unfinished: 0,
      },
      clientProblems: [],
    }),
    window: () => QUIET_WINDOW,
    workerRates: () => new Map(),
    setConcurrency: (concurrency) => void calls.push(`concurrency ${concurrency}`),
    start: () => void calls.push("start"),
    stop: () => void calls.push("stop"),
  };
}
