import type { StatisticName } from "../../measure/summary.ts";
import type { LatencySummary } from "../../measure/summary.ts";
import type { ReportCell } from "./cell.ts";
import { known } from "./format.ts";
import type { ReportModel } from "./model.ts";
import { type Readings, valueOf } from "./reading.ts";

const COLUMNS = ["mode", "concurrency", "snapshot", "p50", "p95", "hit_rate", "rps", "tokens_per_s", "run", "workers"];

/** The sweep as a table of tabs, a line per snapshot, as dashboards read it; a run without snapshots is one line. */
export function sweepTsv({ cells }: ReportModel): string {
  const rows = cells.flatMap((cell) => (cell.snapshots.length === 0 ? [wholeRow(cell)] : snapshotRows(cell)));
  return `${[COLUMNS, ...rows].map((row) => row.join("\t")).join("\n")}\n`;
}

function snapshotRows(cell: ReportCell): string[][] {
  return cell.snapshots.map((snapshot, at) => [
    cell.arm,
    loadOf(cell),
    String(at + 1),
    ofSummary(snapshot.ttftMs.completed, "p50"),
    ofSummary(snapshot.ttftMs.completed, "p95"),
    field(known(snapshot.cache.observed), 4),
    field(snapshot.requestsPerSecond, 3),
    field(snapshot.outputTokensPerSecond, 1),
    String(cell.run),
    String(cell.level.workers ?? ""),
  ]);
}

function wholeRow(cell: ReportCell): string[] {
  const { completed } = cell.latencies.ttftMs.readings;
  const { rates } = cell;
  return [
    cell.arm,
    loadOf(cell),
    "all",
    ofReadings(completed, "p50"),
    ofReadings(completed, "p95"),
    field(known(cell.cache?.observed), 4),
    field(rates.requestsPerSecond ?? rates.requestsPerSecondOverSpan, 3),
    field(rates.outputTokensPerSecond ?? rates.outputTokensPerSecondOverSpan, 1),
    String(cell.run),
    String(cell.level.workers ?? ""),
  ];
}

function loadOf({ level: { concurrency, rateRps, speed } }: ReportCell): string {
  return String(concurrency ?? rateRps ?? speed ?? "");
}

function ofSummary(summary: LatencySummary, name: StatisticName): string {
  return field(summary[name] ?? undefined, 1);
}

function ofReadings(readings: Readings, name: StatisticName): string {
  return field(valueOf(readings[name]), 1);
}

/** Empty where there is no number. */
function field(value: number | undefined, decimals: number): string {
  return value === undefined ? "" : value.toFixed(decimals);
}
