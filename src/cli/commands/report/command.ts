import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Command } from "commander";
import { WarmpathError } from "../../../core/errors.ts";
import { baselinesOf } from "../../../lab/report/baselines-of.ts";
import { buildModel, type ReportModel } from "../../../lab/report/model.ts";
import { headline } from "../../../lab/report/sections/verdict.ts";
import { levelColumn } from "../../../lab/report/sections/levels.ts";
import { serialiseBaselines } from "../../../lab/results/baselines.ts";
import type { Slo } from "../../../measure/slo.ts";
import type { Terminal } from "../../terminal.ts";
import { writingTo } from "../../writing.ts";
import { collectInput } from "./collect-input.ts";
import { type ReportFormat, readFormats, readSlo } from "./options.ts";
import { publishedOf } from "./published.ts";
import { AIPERF_FOLDER, writeAiperf } from "./write-aiperf.ts";
import { writeReport } from "./write-report.ts";

interface ReportOptions {
  readonly out: string;
  readonly format: readonly ReportFormat[];
  readonly baseline?: string;
  readonly slo?: Slo;
  readonly baselines?: string;
  readonly aiperf?: boolean;
  readonly json?: boolean;
}

/** `warmpath report`: results folders, our own or AIPerf's, as a report. */
export function reportCommand(terminal: Terminal): Command {
  return new Command("report")
    .description("Render results folders, our own or AIPerf's, into a report.")
    .argument("<folders...>", "results folders, folders of warmpath load, or folders with runs of AIPerf below them")
    .option("--out <folder>", "where report.md, report.html and the table of the sweep go", "report")
    .option("--format <list>", "md, html, tsv", readFormats, ["md", "html", "tsv"] as const)
    .option("--baseline <arm>", "the arm that others are held against; round-robin unless told")
    .option("--slo <limits>", "limits in ms, such as ttft=600,tpot=60, in place of the run's own", readSlo)
    .option("--baselines <file>", "also write the baselines that the live page shows")
    .option(
      "--aiperf",
      "also write AIPerf's files of every cell, below aiperf/; of runs that repeat one another, of the first",
    )
    .option("--json", "print what was written and the verdicts as JSON")
    .helpOption("-h, --help", "print this help")
    .addHelpText(
      "after",
      [
        "",
        "Examples:",
        "  $ warmpath report results/sweep --out reports/sweep",
        "  $ warmpath report aiperf/off aiperf/on --slo ttft=600",
        "  $ warmpath report results/sweep --format md --baselines baselines.json",
      ].join("\n"),
    )
    .action((folders: readonly string[], options: ReportOptions) => report(folders, options, terminal));
}

async function report(folders: readonly string[], options: ReportOptions, terminal: Terminal): Promise<void> {
  const input = await collectInput(folders, { mode: "pool", baseline: options.baseline, slo: options.slo });
  if (input.cells.length === 0) {
    throw new WarmpathError("WP_INVALID_INPUT", input.problems.join("; ") || "there is nothing to report");
  }
  if (options.baseline !== undefined && !input.cells.some(({ arm }) => arm === options.baseline)) {
    const names = [...new Set(input.cells.map(({ arm }) => arm))].join(", ");
    throw new WarmpathError(
      "WP_INVALID_INPUT",
      `--baseline: there is no arm "${options.baseline}"; there are ${names}`,
    );
  }
  const model = buildModel({ ...input, published: await publishedOf(input.sources) });
  const { out, baselines } = options;
  const written = await writingTo(`--out ${out}`, () => writeReport(model, out, options.format));
  if (baselines !== undefined) {
    await writingTo(`--baselines ${baselines}`, () => writeBaselines(model, baselines));
    written.push(baselines);
  }
  if (options.aiperf === true) {
    const folder = join(out, AIPERF_FOLDER);
    if ((await writingTo(`--out ${out}`, () => writeAiperf(model, folder))) > 0) written.push(folder);
  }
  if (options.json === true) terminal.print(JSON.stringify(reportJson(model, written), null, 2));
  else printReport(model, written, terminal);
}

async function writeBaselines(model: ReportModel, file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, serialiseBaselines(baselinesOf(model)));
}

function printReport(model: ReportModel, written: readonly string[], terminal: Terminal): void {
  for (const problem of model.problems) terminal.printError(problem);
  for (const comparison of model.comparisons) {
    terminal.print(headline(comparison, levelColumn(model)).replaceAll("**", ""));
  }
  for (const path of written) terminal.print(path);
}

function reportJson(model: ReportModel, written: readonly string[]): object {
  return {
    written,
    problems: model.problems,
    baseline: model.baseline,
    verdicts: model.comparisons.map(({ arm, verdict, levels }) => ({
      arm,
      verdict,
      levels: levels.map(({ level, verdict: at }) => ({ level, verdict: at.kind, reasons: at.reasons })),
    })),
  };
}
