import type {
  BaselineMetric,
  HistoryColumn,
  LatencyWindow,
  RollingWindow,
  SloLimits,
} from "../../../src/dashboard/protocol.ts";
import { duration, plain, type Quantity, rate, share } from "../format.ts";

/** Which percentile of latencies is shown large and drawn. */
export type Statistic = "p50" | "p95" | "p99";

export const STATISTICS: readonly Statistic[] = ["p50", "p95", "p99"];

type Latency = "ttft" | "tpot" | "itl" | "e2e";

/** One card: what it shows, and where it is found. */
export interface MetricDefinition {
  readonly id: string;
  readonly title: string;
  readonly about: string;
  readonly format: (value: number) => Quantity;
  /** Which way is better; undefined where neither is. */
  readonly better: "lower" | "higher" | undefined;
  readonly column: (statistic: Statistic) => HistoryColumn;
  readonly baseline: ((statistic: Statistic) => BaselineMetric) | undefined;
  readonly value: (window: RollingWindow, statistic: Statistic) => number | null;
  readonly latency?: (window: RollingWindow) => LatencyWindow;
  readonly sloMs?: (slo: SloLimits) => number | undefined;
  /** Smallest extent of the vertical axis, so that noise does not look like news. */
  readonly leastTop: number;
  /** Shares that are all above one half are drawn from there. */
  readonly isShare?: boolean;
}

function latencyCard(
  latency: Latency,
  title: string,
  about: string,
  leastTop: number,
  sloMs?: (slo: SloLimits) => number | undefined,
): MetricDefinition {
  const windowOf = (window: RollingWindow): LatencyWindow => window[`${latency}Ms`];
  const column = (statistic: Statistic) => `${latency}${statistic.toUpperCase() as Uppercase<Statistic>}Ms` as const;
  return {
    id: latency,
    title,
    about,
    format: duration,
    better: "lower",
    column,
    baseline: column,
    value: (window, statistic) => windowOf(window)[statistic],
    latency: windowOf,
    ...(sloMs !== undefined && { sloMs }),
    leastTop,
  };
}

/** The cards in the order in which they stand. */
export const METRICS: readonly MetricDefinition[] = [
  latencyCard("ttft", "TTFT", "time to first token", 200, (slo) => slo.ttftMs),
  latencyCard("tpot", "TPOT", "time per output token", 20, (slo) => slo.tpotMs),
  {
    id: "hit",
    title: "Cache hit rate",
    about: "prompt tokens found in KV caches",
    format: share,
    better: "higher",
    column: () => "hitShare",
    baseline: () => "hitShare",
    value: (window) => window.hitShare,
    leastTop: 1,
    isShare: true,
  },
  latencyCard("itl", "ITL", "gap between two tokens", 20),
  latencyCard("e2e", "End to end", "whole answer", 1000, (slo) => slo.e2eMs),
  {
    id: "tokens",
    title: "Output tokens",
    about: "of all answers together",
    format: rate,
    better: "higher",
    column: () => "outputTokensPerSecond",
    baseline: () => "outputTokensPerSecond",
    value: (window) => window.outputTokensPerSecond,
    leastTop: 10,
  },
  {
    id: "requests",
    title: "Requests",
    about: "ended per second",
    format: rate,
    better: "higher",
    column: () => "requestsPerSecond",
    baseline: () => "requestsPerSecond",
    value: (window) => window.requestsPerSecond,
    leastTop: 0.5,
  },
  {
    id: "errors",
    title: "Error rate",
    about: "ended without a whole answer",
    format: share,
    better: "lower",
    column: () => "errorShare",
    baseline: () => "errorShare",
    value: (window) => window.errorShare,
    leastTop: 0.02,
  },
  {
    id: "in-flight",
    title: "In flight",
    about: "sent and not ended",
    format: plain,
    better: undefined,
    column: () => "inFlight",
    baseline: undefined,
    value: (window) => window.inFlight,
    leastTop: 5,
  },
];
