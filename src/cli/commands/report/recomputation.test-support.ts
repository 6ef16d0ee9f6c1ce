/** A run, its report, and the lines of records.jsonl.gz to compute the report again from, with none of the code that made it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import pc from "picocolors";
import { expect } from "vitest";
import type { ResultsFile } from "../../../lab/results/types.ts";
import { runCli } from "../../program.ts";
import { type ReadTable, sectionOf, tablesOf } from "./markdown-tables.test-support.ts";

/** A line of the records, as far as reports need it. */
export interface Line {
  readonly cell: string;
  readonly id: string;
  readonly session?: string;
  readonly turn: number;
  readonly intendedNs: number;
  readonly sentNs?: number;
  readonly placedNs?: number;
  readonly firstContentNs?: number;
  readonly lastContentNs?: number;
  readonly endNs?: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly predictedCachedTokens: number | "unavailable";
  readonly observedCachedTokens: number | "unavailable";
  readonly worker?: string;
  readonly account: string;
  readonly tokenTimes?: { readonly gaps: { readonly bucketCounts: readonly number[]; readonly sumNs: number } };
}

/** What experiments here have in common: two runs of 2 s, 10 s and 5 s, on three workers. */
export const TIMES = "warmUpSeconds: 2\nwindowSeconds: 10\ndrainSeconds: 5\nsnapshots: 2\nruns: 2\n";
export const START = 2e9;
export const END = 12e9;
const LAST = 17e9;
export const LEVELS: readonly string[] = ["6", "24"];
export const RUNS: readonly number[] = [1, 2];
export const WORKERS: readonly string[] = ["worker-0", "worker-1", "worker-2"];

/** An experiment that was run and reported. */
export class Recomputation {
  readonly markdown: string;
  /** For what only workers tell, and no request. */
  readonly results: ResultsFile;
  readonly #lines: readonly Line[];
  readonly #arms: readonly string[];
  readonly #folder: string;

  private constructor(folder: string, arms: readonly string[]) {
    this.#folder = folder;
    this.#arms = arms;
    this.markdown = readFileSync(join(folder, "report/report.md"), "utf8");
    this.results = JSON.parse(readFileSync(join(folder, "results/results.json"), "utf8")) as ResultsFile;
    const text = gunzipSync(readFileSync(join(folder, "results/records.jsonl.gz"))).toString("utf8");
    this.#lines = text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Line);
  }

  static async of(experiment: string, arms: readonly string[]): Promise<Recomputation> {
    const folder = mkdtempSync(join(tmpdir(), "warmpath-recompute-"));
    writeFileSync(join(folder, "experiment.yaml"), experiment);
    const terminal = {
      colours: pc.createColors(false),
      debug: false,
      print: () => {},
      printError: (line: string) => {
        throw new Error(line);
      },
      readStdin: () => Promise.resolve(""),
    };
    const results = join(folder, "results");
    await runCli(["run", join(folder, "experiment.yaml"), "--out", results, "--threads", "1"], terminal);
    await runCli(["report", results, "--out", join(folder, "report"), "--format", "md"], terminal);
    return new Recomputation(folder, arms);
  }

  close(): void {
    rmSync(this.#folder, { recursive: true });
  }

  /** All requests of a cell. */
  all(arm: string, level: string, run: number): Line[] {
    return this.#lines.filter(({ cell }) => cell === `${arm}/concurrency-${level}-workers-3/run-${run}`);
  }

  /** The requests that were due in the windows of all runs. */
  pooled(arm: string, level: string): Line[] {
    return RUNS.flatMap((run) => windowOf(this.all(arm, level, run)));
  }

  eachGroup(check: (arm: string, level: string, records: readonly Line[]) => void): void {
    for (const level of LEVELS) for (const arm of this.#arms) check(arm, level, this.pooled(arm, level));
  }

  tables(section: string): ReadTable[] {
    return tablesOf(sectionOf(this.markdown, section));
  }

  tableIn(section: string, title: RegExp): ReadTable {
    const found = this.tables(section).find((one) => title.test(one.title));
    if (found !== undefined) return found;
    const titles = this.tables(section).map((one) => one.title);
    throw new Error(`no table ${title} in ${section}: ${titles.join(" / ")}`);
  }
}

export function windowOf(records: readonly Line[], from: number = START, to: number = END): Line[] {
  return records.filter(({ intendedNs }) => intendedNs >= from && intendedNs < to);
}

export function rowOf(table: ReadTable, arm: string, level: string): Record<string, string> {
  const row = table.rows.find((one) => one["Arm"] === arm && one[table.columns[0]] === level);
  if (row === undefined) throw new Error(`no row of ${arm} at ${level} in ${table.title}`);
  return row;
}

export function isCompleted({ account, endNs }: Line): boolean {
  return account === "completed" && endNs !== undefined && endNs <= LAST;
}

export const ttft = (line: Line): number => elapsedMs(line.intendedNs, line.firstContentNs);
export const e2e = (line: Line): number => elapsedMs(line.intendedNs, line.lastContentNs);
export const tpot = (line: Line): number =>
  elapsedMs(line.firstContentNs, line.lastContentNs) / (line.outputTokens - 1);

function elapsedMs(fromNs = Number.NaN, toNs = Number.NaN): number {
  return (toNs - fromNs) / 1e6;
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const position = share * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(position)], sorted[Math.ceil(position)]];
  return high === low ? low : low + (high - low) * (position - Math.floor(position));
}

export function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** A cell of a table holds a value if it is what the value is rounded to; `slack` is a share of it that is allowed beside. */
export function expectCell(cell: string, value: number, slack = 0): void {
  const [, sign = "", digits = ""] = /^([−+]?)([\d,]+(?:\.\d+)?)/.exec(cell) ?? [];
  expect(digits, `"${cell}" should be ${value}`).not.toBe("");
  const decimals = digits.split(".")[1]?.length ?? 0;
  const written = Number(digits.replaceAll(",", "")) * (sign === "−" ? -1 : 1);
  const allowed = 0.5 * 10 ** -decimals + 1e-6 + slack * Math.abs(value);
  expect(Math.abs(written - value), `"${cell}" should be ${value}`).toBeLessThanOrEqual(allowed);
}

/** Tokens that fell into the window, or a part of it, taken to come evenly between the first and the last. */
export function tokensInWindow(
  { firstContentNs, lastContentNs, outputTokens }: Line,
  from: number = START,
  to: number = END,
): number {
  if (firstContentNs === undefined || lastContentNs === undefined) return 0;
  const before = (ns: number): number => {
    if (ns <= firstContentNs) return 0;
    if (ns > lastContentNs) return outputTokens;
    return 1 + ((outputTokens - 1) * (ns - firstContentNs)) / (lastContentNs - firstContentNs);
  };
  return before(to) - before(from);
}

/** How many requests each worker had at a time, and for how long, by walking through the window. */
export function inFlightOverTime(
  records: readonly Line[],
): { readonly counts: readonly number[]; readonly ns: number }[] {
  const edges = [...new Set(records.flatMap(({ placedNs, endNs }) => [placedNs ?? 0, endNs ?? 0]))]
    .filter((ns) => ns > START && ns < END)
    .concat(START, END)
    .sort((a, b) => a - b);
  return edges.slice(1).map((edge, i) => {
    const middle = (edges[i] + edge) / 2;
    const under = records.filter(({ placedNs = Infinity, endNs = Infinity }) => placedNs <= middle && endNs > middle);
    return { counts: WORKERS.map((name) => under.filter(({ worker }) => worker === name).length), ns: edge - edges[i] };
  });
}
