import { AIPERF_PERCENTILES, type AiperfMetric } from "./metric.ts";

/** Name of the file in a run's folder, unless a prefix was given to AIPerf. */
export const AIPERF_CSV_FILE = "profile_export_aiperf.csv";

const STATISTICS = ["avg", "min", "max", "sum", ...AIPERF_PERCENTILES, "std"] as const;
/** Units that AIPerf does not print beside a name. */
const SILENT_UNITS: ReadonlySet<string> = new Set(["count", "requests"]);

/** Names of metrics in the table, where they are not simply the tag in words. */
const TITLES: Readonly<Record<string, string>> = {
  error_isl: "Error Input Sequence Length",
  total_isl: "Total Input Sequence Length",
  total_osl: "Total Output Sequence Length",
  error_request_count: "Error Request Count",
};

/** The text of `profile_export_aiperf.csv`: distributions first, then single values, two decimals. */
export function writeAiperfCsv(metrics: ReadonlyMap<string, AiperfMetric>): string {
  const distributions: string[] = [["Metric", ...STATISTICS].join(",")];
  const scalars: string[] = ["Metric,Value"];
  for (const [tag, metric] of metrics) {
    const name = quoted(titleOf(tag, metric.unit));
    if (metric.percentiles.length === 0) scalars.push(`${name},${decimals(metric.avg)}`);
    else
      distributions.push([name, ...STATISTICS.map((statistic) => decimals(statisticOf(metric, statistic)))].join(","));
  }
  return `${[...distributions, "", ...scalars].join("\n")}\n`;
}

/** A row of the table: its name as written, its unit, and its values by column. */
export interface AiperfCsvRow {
  readonly title: string;
  readonly unit: string | undefined;
  readonly values: ReadonlyMap<string, number>;
}

/** Reads the two tables of requests; the tables of GPUs after them are left alone. */
export function parseAiperfCsv(text: string): AiperfCsvRow[] {
  const rows: AiperfCsvRow[] = [];
  let columns: readonly string[] | undefined;
  for (const line of text.split(/\r?\n/)) {
    const cells = cellsOf(line);
    if (cells[0] === "Endpoint") break;
    if (line.trim() === "") columns = undefined;
    else if (cells[0] === "Metric") columns = cells.slice(1);
    else if (columns !== undefined) rows.push(rowOf(cells, columns));
  }
  return rows;
}

function rowOf([name, ...cells]: readonly string[], columns: readonly string[]): AiperfCsvRow {
  const [, title = name, unit] = /^(.*?)(?: \(([^()]*)\))?$/.exec(name) ?? [];
  const values = columns.flatMap((column, at): [string, number][] => {
    const written = (cells[at] ?? "").replaceAll(",", "");
    return written === "" || Number.isNaN(Number(written)) ? [] : [[column, Number(written)]];
  });
  return { title, unit, values: new Map(values) };
}

function titleOf(tag: string, unit: string): string {
  const words = tag.split("_").map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  const title = TITLES[tag] ?? words.join(" ").replace(" To ", " to ").replace(" Per ", " Per ");
  return SILENT_UNITS.has(unit) ? title : `${title} (${unit})`;
}

function statisticOf(metric: AiperfMetric, name: (typeof STATISTICS)[number]): number | undefined {
  switch (name) {
    case "avg":
    case "min":
    case "max":
    case "sum":
    case "std":
      return metric[name];
    default:
      return metric.percentiles.find(([share]) => Math.round(share * 100) === Number(name.slice(1)))?.[1];
  }
}

function decimals(value: number | undefined): string {
  return value === undefined ? "" : value.toFixed(2);
}

function quoted(cell: string): string {
  return /[",]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

function cellsOf(line: string): string[] {
  return Array.from(line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g), ([, cell]) =>
    cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell,
  ).slice(0, line.endsWith(",") ? undefined : -1);
}
