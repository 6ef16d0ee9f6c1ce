import { byArmAndLevel, findMetric, levelName, meanOverRuns } from "../../../lab/experiment/metrics.ts";
import { repetitionRemarks } from "../../../lab/experiment/repeated-runs.ts";
import type { Arm } from "../../../lab/experiment/types.ts";
import type { CellResult } from "../../../lab/results/types.ts";
import { tableLines, type TableColumn } from "../../table.ts";
import type { Colours } from "../../terminal.ts";

interface ShownMetric {
  readonly metric: string;
  readonly title: string;
  /** Left out where no cell has it. */
  readonly isRare?: boolean;
}

/** What the terminal shows of every arm and level; results.json has the rest. */
const SHOWN: readonly ShownMetric[] = [
  { metric: "ttftP50Ms", title: "TTFT p50" },
  { metric: "ttftP95Ms", title: "p95 ms" },
  { metric: "itlP50Ms", title: "ITL p50" },
  { metric: "tpotP50Ms", title: "TPOT p50 ms" },
  { metric: "e2eP50Ms", title: "E2E p50 ms" },
  { metric: "outputTokensPerSecond", title: "tok/s" },
  { metric: "requestsPerSecond", title: "req/s" },
  { metric: "hitShare", title: "hit %" },
  { metric: "inflightSpread", title: "spread" },
  { metric: "draftAcceptance", title: "drafts accepted %", isRare: true },
];

/** Every arm at every level, means over runs. */
export function resultsTable(cells: readonly CellResult[], colours: Colours): string[] {
  const isKnown = (name: string): boolean => cells.some((cell) => findMetric(name)?.valueOf(cell) !== undefined);
  const shown = SHOWN.filter(({ metric, isRare }) => isRare !== true || isKnown(metric));
  const columns: TableColumn[] = [
    { title: "arm", align: "left" },
    { title: "level", align: "left" },
    { title: "offered", align: "right" },
    { title: "completed", align: "right" },
    { title: "turned away", align: "right" },
    ...shown.map(({ title }): TableColumn => ({ title, align: "right" })),
    { title: "goodput %", align: "right" },
    { title: "SLO", align: "left" },
    { title: "", align: "left" },
  ];
  const rows = byArmAndLevel(cells).map(({ arm, level, cells: runs, saturated }) => {
    const sum = (of: (cell: CellResult) => number): number => runs.reduce((total, cell) => total + of(cell), 0);
    const turnedAway = sum(({ accounting: { offered, completed, unfinished } }) => offered - completed - unfinished);
    // Without limits every arm would meet them.
    const verdicts = [...new Set(runs.map(({ slo }) => (Object.keys(slo.limits).length === 0 ? "-" : slo.verdict)))];
    return {
      cells: [
        arm,
        levelName(level),
        String(sum(({ accounting }) => accounting.offered)),
        String(sum(({ accounting }) => accounting.completed)),
        String(turnedAway),
        ...shown.map(({ metric }) => shownMean(runs, metric)),
        (100 * (sum(({ goodputShare }) => goodputShare) / runs.length)).toFixed(1),
        verdicts.length === 1 ? verdicts[0] : "mixed",
        [...(saturated ? ["saturated"] : []), ...voidMark(runs)].join(", "),
      ],
    };
  });
  return tableLines(columns, rows, colours);
}

/** Runs that must not be used are in the means all the same, and so are named beside them. */
function voidMark(runs: readonly CellResult[]): string[] {
  const count = runs.filter(({ voided = [] }) => voided.length > 0).length;
  return count === 0 ? [] : [runs.length === 1 ? "void" : `${count} of ${runs.length} void`];
}

/**
 * What a table cannot show: why an arm counts as saturated, by its first run that is, and why requests were turned away,
 * over all runs as in the table.
 */
export function remarks(cells: readonly CellResult[], arms: readonly Arm[]): string[] {
  const ofCells = byArmAndLevel(cells).flatMap(({ arm, level, cells: runs, saturated }) => {
    const where = `${arm} at ${levelName(level)}`;
    const lines: string[] = [];
    const full = runs.find((cell) => cell.saturated);
    if (saturated && full !== undefined) {
      const deciles = full.stationarity.ttftByDecileMs.map((ms) => (ms === null ? "-" : (ms / 1000).toFixed(1)));
      lines.push(
        `${where}: ${full.stationarity.reasons.join("; ")}; TTFT p50 by arrival in tenths: ${deciles.join(" ")} s`,
      );
    }
    const refused = refusedByAccount(runs).map(({ account, count, reason }) => {
      const most = reason === "" ? "" : `, most by ${reason}${thresholdOf(arms, arm, reason)}`;
      return `${count} ${account === "timedOut" ? "timed out" : account}${most}`;
    });
    if (refused.length > 0) lines.push(`${where}: ${refused.join("; ")}`);
    const ranOut = runs.find(({ ranOutSeconds }) => ranOutSeconds !== undefined);
    if (ranOut !== undefined) {
      const [out, end] = [ranOut.ranOutSeconds ?? 0, ranOut.window.endSeconds].map((seconds) => seconds.toFixed(1));
      lines.push(
        `${where}: the trace had nothing more to send from ${out} s on, and rates are over a window until ${end} s`,
      );
    }
    const unsent = runs.reduce((sum, { unsentRows = 0 }) => sum + unsentRows, 0);
    if (unsent > 0) {
      const why = "due after the window, or behind a turn that did not complete";
      lines.push(`${where}: ${unsent} rows of the trace were never sent: ${why}`);
    }
    return lines;
  });
  return [...ofCells, ...repetitionRemarks(cells)];
}

interface RefusedRequests {
  readonly account: string;
  readonly count: number;
  /** The most frequent message; empty where those requests have none, as such that were given up. */
  readonly reason: string;
}

/** Requests that were turned away, by account, most frequent first. */
function refusedByAccount(runs: readonly CellResult[]): RefusedRequests[] {
  const accounts = new Map<string, Map<string, number>>();
  for (const { account, message, count } of runs.flatMap(({ refusals }) => refusals)) {
    if (account === "unfinished") continue;
    const messages = accounts.get(account) ?? new Map<string, number>();
    accounts.set(account, messages.set(message, (messages.get(message) ?? 0) + count));
  }
  return Array.from(accounts, ([account, messages]) => {
    const [[reason]] = [...messages].sort(([, a], [, b]) => b - a);
    return { account, reason, count: [...messages.values()].reduce((sum, count) => sum + count, 0) };
  }).sort((a, b) => b.count - a.count);
}

/** The threshold that an arm's own watermark has; a refusal names the knob alone. */
function thresholdOf(arms: readonly Arm[], name: string, knob: string): string {
  const watermarks = Object.entries(arms.find((arm) => arm.name === name)?.admission.watermarks ?? {});
  const value = watermarks.find(([watermark]) => watermark === knob)?.[1];
  return value === undefined ? "" : ` (threshold ${value})`;
}

function shownMean(runs: readonly CellResult[], name: string): string {
  const metric = findMetric(name);
  const value = metric === undefined ? undefined : meanOverRuns(runs, metric);
  if (metric === undefined || value === undefined) return "-";
  return (metric.kind === "share" ? 100 * value : value).toFixed(metric.decimals);
}
