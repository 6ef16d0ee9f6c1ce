import { ACCOUNTS, type Account, type Accounting } from "../../../core/accounts.ts";
import { UNAVAILABLE, type Unavailable } from "../../../core/request-record.ts";
import type { ClientHealth } from "../../../loadgen/client-health.ts";
import type { LoadSummary } from "../../../loadgen/types.ts";
import type { RollingLatency } from "../../../measure/rolling/rolling-distribution.ts";
import type { RollingSnapshot } from "../../../measure/rolling/rolling-metrics.ts";
import type { LatencySummary } from "../../../measure/summary.ts";
import { tableLines, type TableColumn } from "../../table.ts";
import type { Colours } from "../../terminal.ts";
import type { PreparedLoad } from "./compose.ts";

/** What a load is reported with beside its summary. */
export interface LoadOutcome {
  readonly summary: LoadSummary;
  readonly prepared: PreparedLoad;
  readonly interrupted: boolean;
  readonly userFailures: number;
}

const NAMES: Readonly<Record<Account, string>> = {
  completed: "completed",
  shed: "shed",
  rejected: "rejected",
  failed: "failed",
  timedOut: "timed out",
  cancelled: "cancelled",
  unfinished: "unfinished",
};

const LATENCIES = [
  ["ttft", "TTFT"],
  ["tpot", "TPOT"],
  ["itl", "ITL"],
  ["e2e", "E2E"],
] as const;

const COLUMNS: readonly TableColumn[] = [
  { title: "ms", align: "left" },
  { title: "mean", align: "right" },
  { title: "p50", align: "right" },
  { title: "p95", align: "right" },
  { title: "p99", align: "right" },
  { title: "n", align: "right" },
];

/** What a person reads at the end. */
export function outcomeLines(
  { summary, prepared, interrupted, userFailures }: LoadOutcome,
  colours: Colours,
): string[] {
  const { totals, health, seconds } = summary;
  const { settings, model } = prepared;
  const accounts = totals.accounts();
  const rows = LATENCIES.map(([name, title]) => {
    const { mean, p50, p95, p99, n } = totals.latencyMs(name).completed;
    return { cells: [title, ...[mean, p50, p95, p99].map(milliseconds), String(n)] };
  });
  const lines = [
    `${settings.url}  ${model}  ${seconds.toFixed(1)} s${interrupted ? ", stopped" : ""}`,
    accountsLine(accounts),
    "",
    ...tableLines(COLUMNS, rows, colours),
    "",
    ratesLine(summary),
    ...workersLines(totals.workers()),
    ...failureLines(totals.failures()),
  ];
  if (userFailures > 0) lines.push(`the user model failed ${userFailures} times; the built-in user asked instead`);
  lines.push(healthLine(health, colours));
  return lines;
}

/** The same for machines, and for summary.json. */
export function outcomeJson({ summary, prepared, interrupted, userFailures }: LoadOutcome): object {
  const { totals, health, seconds } = summary;
  const { settings, model } = prepared;
  const latencies = Object.fromEntries(LATENCIES.map(([name]) => [`${name}Ms`, totals.latencyMs(name)]));
  return {
    schemaVersion: 1,
    model,
    settings: { ...settings, starters: settings.schedule === undefined ? settings.starters : undefined },
    seconds,
    interrupted,
    accounting: totals.accounts(),
    ...latencies,
    requestsPerSecond: totals.accounts().completed / seconds,
    outputTokensPerSecond: totals.outputTokens / seconds,
    promptTokens: totals.promptTokens,
    outputTokens: totals.outputTokens,
    cacheHitRate: totals.cacheHitRate(),
    workers: Object.fromEntries(totals.workers()),
    requestsByTurn: totals.turns(),
    failures: Object.fromEntries(totals.failures()),
    userModelFailures: userFailures,
    clientHealth: health,
  };
}

/** One line while it runs: the last 60 s. */
export function progressLine(rolling: RollingSnapshot, seconds: number, concurrency: number | undefined): string {
  const { ttftMs, itlMs, errorRate } = rolling;
  const parts = [
    `${seconds.toFixed(0)} s`,
    ...(concurrency === undefined ? [] : [`${concurrency} conversations`]),
    `${rolling.inFlight} in flight`,
    `TTFT ${pair(ttftMs)} ms`,
    `ITL ${pair(itlMs)} ms`,
    `${rolling.requestsPerSecond.toFixed(1)} req/s`,
    `${rolling.outputTokensPerSecond.toFixed(0)} tok/s`,
    `hit ${percent(rolling.cacheHitRate)}`,
    `errors ${errorRate === null ? "-" : percent(errorRate)}`,
  ];
  const { oldestInFlightMs } = rolling;
  if (oldestInFlightMs !== null) parts.push(`oldest ${(oldestInFlightMs / 1000).toFixed(0)} s`);
  return parts.join("  ");
}

/** All accounts, and that they add up. */
function accountsLine(accounts: Accounting): string {
  const parts = ACCOUNTS.map((account) => `${accounts[account]} ${NAMES[account]}`);
  return `${accounts.offered} offered = ${parts.join(" + ")}`;
}

function ratesLine({ totals, seconds }: LoadSummary): string {
  const perSecond = (count: number): string => (seconds === 0 ? 0 : count / seconds).toFixed(1);
  const hits = `cache hit rate ${percent(totals.cacheHitRate())}`;
  return `${perSecond(totals.accounts().completed)} requests/s  ${perSecond(totals.outputTokens)} output tokens/s  ${hits}`;
}

function workersLines(workers: ReadonlyMap<string, number>): string[] {
  const known = [...workers].filter(([name]) => name !== UNAVAILABLE);
  if (known.length === 0) return [];
  return [
    `workers: ${known
      .sort(byName)
      .map(([name, count]) => `${name} ${count}`)
      .join(", ")}`,
  ];
}

const MOST_FAILURES = 5;

function failureLines(failures: ReadonlyMap<string, number>): string[] {
  const most = [...failures].sort(([, a], [, b]) => b - a);
  const shown = most.slice(0, MOST_FAILURES).map(([what, count]) => `${count} x ${what}`);
  return most.length > MOST_FAILURES ? [...shown, `and ${most.length - MOST_FAILURES} other kinds of failure`] : shown;
}

function healthLine(health: ClientHealth, colours: Colours): string {
  const { scheduleLagP99Ms, loopDelayP99Ms, loopUtilisation } = health;
  const figures =
    `requests left ${scheduleLagP99Ms.toFixed(1)} ms late (p99), event loop ${loopDelayP99Ms.toFixed(1)} ms late (p99) ` +
    `and busy for ${(100 * loopUtilisation).toFixed(0)} %`;
  if (health.verdict === "unknown") return `client: not judged, the run was too short; ${figures}`;
  if (health.verdict === "ok") return `client: ok; ${[figures, ...health.reasons].join("; ")}`;
  return colours.red(`client: WAS THE BOTTLENECK, these figures are its own: ${health.reasons.join("; ")}`);
}

function milliseconds(value: LatencySummary["mean"]): string {
  if (value === null) return "-";
  return value >= 100 ? value.toFixed(0) : value.toFixed(2);
}

function pair({ p50, p95 }: RollingLatency): string {
  return `${milliseconds(p50)}/${milliseconds(p95)}`;
}

function percent(share: number | Unavailable): string {
  return share === UNAVAILABLE ? "unavailable" : `${(100 * share).toFixed(1)} %`;
}

function byName([a]: readonly [string, number], [b]: readonly [string, number]): number {
  return a < b ? -1 : 1;
}
