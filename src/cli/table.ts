import type { Colours } from "./terminal.ts";

export interface TableColumn {
  readonly title: string;
  /** Numbers line up on the right, names on the left. */
  readonly align: "left" | "right";
}

export interface TableRow {
  readonly cells: readonly string[];
  /** Printed bright, to find it at a glance. */
  readonly highlighted?: boolean;
}

/** Lines of an aligned table: titles, a rule, one line per row; no line ends in spaces. */
export function tableLines(columns: readonly TableColumn[], rows: readonly TableRow[], colours: Colours): string[] {
  const widths = columns.map((column, at) => Math.max(column.title.length, ...rows.map((row) => row.cells[at].length)));
  const line = (cells: readonly string[]): string =>
    columns
      .map(({ align }, at) => (align === "left" ? cells[at].padEnd(widths[at]) : cells[at].padStart(widths[at])))
      .join("  ")
      .trimEnd();
  return [
    colours.bold(line(columns.map((column) => column.title))),
    colours.dim(widths.map((width) => "─".repeat(width)).join("  ")),
    ...rows.map((row) => (row.highlighted === true ? colours.green(line(row.cells)) : line(row.cells))),
  ];
}

/** A number for a person: whole where it is whole, else three decimals at most. */
export function displayNumber(value: number): string {
  if (value === Infinity) return "∞";
  if (value === -Infinity) return "-∞";
  const rounded = Math.round(value * 1000) / 1000;
  return Object.is(rounded, -0) ? "0" : String(rounded);
}
