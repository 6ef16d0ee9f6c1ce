import type { ErrorGroup, ErrorSummary } from "../../../sim/calibration/error-summary.ts";
import type { RowPrediction } from "../../../sim/calibration/prediction.ts";
import { isInSubset, type RowSubset } from "../../../sim/calibration/silicon-fit.ts";
import type { TimingConstants } from "../../../sim/timing/step-timer.ts";
import { tableLines } from "../../table.ts";
import type { Colours } from "../../terminal.ts";

/** Constants of one cell before and after a fit. */
export interface FittedCell {
  readonly name: string;
  /** Rows it was fitted on. */
  readonly rows: number;
  readonly before: TimingConstants;
  readonly after: TimingConstants;
}

/** What one run of the command found. */
export interface Calibration {
  readonly file: string;
  readonly predictions: readonly RowPrediction[];
  readonly groups: readonly ErrorGroup[];
  readonly fit?: { readonly subset: RowSubset; readonly cells: readonly FittedCell[] };
}

const left = (title: string): { title: string; align: "left" } => ({ title, align: "left" });
const right = (title: string): { title: string; align: "right" } => ({ title, align: "right" });

/** Rows, groups and what was not covered, for a person. */
export function calibrationLines(calibration: Calibration, colours: Colours): string[] {
  const { predictions, groups, fit } = calibration;
  const rows = predictions.map((prediction) => {
    const { row } = prediction;
    if (!prediction.covered) {
      return {
        cells: [
          row.id,
          row.tpotMs.toFixed(2),
          "-",
          "-",
          row.ttftMs.toFixed(0),
          "-",
          "-",
          `not covered: ${prediction.reason}`,
        ],
      };
    }
    return {
      cells: [
        row.id,
        row.tpotMs.toFixed(2),
        prediction.tpotMs.toFixed(2),
        signed(prediction.tpotErrorPct),
        row.ttftMs.toFixed(0),
        prediction.ttftMs.toFixed(0),
        signed(prediction.ttftErrorPct),
        notes(prediction),
      ],
    };
  });
  const columns = [
    left("row"),
    right("TPOT ms"),
    right("predicted"),
    right("error %"),
    right("TTFT ms"),
    right("predicted"),
    right("error %"),
    left("notes"),
  ];
  const uncovered = predictions.filter((prediction) => !prediction.covered).length;
  return [
    ...tableLines(columns, rows, colours),
    "",
    ...groupTable(groups, colours),
    "",
    `${predictions.length} rows, ${predictions.length - uncovered} covered, ${uncovered} not covered (listed above with the reason)`,
    "TTFT errors of groups are over rows with a measured TTFT below 5 s; notes: s = saturated, d = documented client, f = in the calibration half",
    ...(fit === undefined ? [] : ["", ...fitLines(fit.subset, fit.cells)]),
  ];
}

function notes(prediction: RowPrediction): string {
  const marks = [prediction.ttftSaturated ? "s" : "", prediction.documentedClient ? "d" : ""];
  return [...marks, isInSubset(prediction.row.id, "calibration") ? "f" : ""].join("");
}

function groupTable(groups: readonly ErrorGroup[], colours: Colours): string[] {
  const columns = [left("group"), right("n"), ...quantity("TPOT"), right("n"), ...quantity("TTFT")];
  return tableLines(
    columns,
    groups.map((group) => ({ cells: groupCells(group), highlighted: group.name.startsWith("goal") })),
    colours,
  );
}

function quantity(name: string): { title: string; align: "right" }[] {
  return [right(`${name} median %`), right("p90 %"), right("bias %")];
}

function groupCells(group: ErrorGroup): string[] {
  return [group.name, ...summaryCells(group.tpot), ...summaryCells(group.ttft)];
}

/** The four cells of a summary; dashes where there is nothing to summarise. */
export function summaryCells(summary: ErrorSummary): string[] {
  if (summary.n === 0) return ["0", "-", "-", "-"];
  return [String(summary.n), summary.medianPct.toFixed(1), summary.p90Pct.toFixed(1), signed(summary.biasPct)];
}

/** A signed percentage with one decimal. */
export function signed(value: number): string {
  return `${value >= 0 ? "+" : ""}${value.toFixed(1)}`;
}

function fitLines(subset: RowSubset, cells: readonly FittedCell[]): string[] {
  const lines = [`constants fitted on the subset ${subset}; errors above are with them`];
  for (const { name, rows, before, after } of cells) {
    lines.push(`  ${name}, on ${rows} ${rows === 1 ? "row" : "rows"}`);
    for (const key of Object.keys(after) as (keyof TimingConstants)[]) {
      if (after[key] !== before[key]) lines.push(`    ${key}: ${before[key]} → ${Number(after[key].toPrecision(4))}`);
    }
  }
  return lines;
}

/** The same as plain data. */
export function calibrationJson(calibration: Calibration): unknown {
  return {
    file: calibration.file,
    rows: calibration.predictions.map((prediction) => ({
      id: prediction.row.id,
      covered: prediction.covered,
      subset: isInSubset(prediction.row.id, "calibration") ? "calibration" : "held-out",
      ttftSaturated: prediction.ttftSaturated,
      documentedClient: prediction.documentedClient,
      measuredTpotMs: prediction.row.tpotMs,
      measuredTtftMs: prediction.row.ttftMs,
      ...(prediction.covered
        ? {
            constants: prediction.cell,
            predictedTpotMs: prediction.tpotMs,
            predictedTtftMs: prediction.ttftMs,
            tpotErrorPct: prediction.tpotErrorPct,
            ttftErrorPct: prediction.ttftErrorPct,
          }
        : { reason: prediction.reason, tpotErrorPct: null, ttftErrorPct: null }),
    })),
    groups: calibration.groups,
    ...(calibration.fit === undefined ? {} : { fit: calibration.fit }),
  };
}

/** Tables to publish: measured values of others stay out. */
export function calibrationMarkdown(calibration: Calibration): string[] {
  const { groups, predictions } = calibration;
  const row = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const lines = [
    row(["group", "n", "TPOT median %", "p90 %", "bias %", "n", "TTFT median %", "p90 %", "bias %"]),
    row(["---", ...Array.from({ length: 8 }, () => "--:")]),
    ...groups.map((group) => row(groupCells(group))),
    "",
    row(["row", "TPOT predicted ms", "error %", "TTFT predicted ms", "error %", "notes"]),
    row(["---", "--:", "--:", "--:", "--:", "---"]),
  ];
  for (const prediction of predictions) {
    lines.push(
      prediction.covered
        ? row([
            prediction.row.id,
            prediction.tpotMs.toFixed(2),
            signed(prediction.tpotErrorPct),
            prediction.ttftMs.toFixed(0),
            signed(prediction.ttftErrorPct),
            notes(prediction),
          ])
        : row([prediction.row.id, "-", "-", "-", "-", `not covered: ${prediction.reason}`]),
    );
  }
  return lines;
}
