import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { Command } from "commander";
import { narrowed } from "../../../lab/experiment/cells.ts";
import { comparePublished } from "../../../lab/experiment/compare-published.ts";
import type { Experiment } from "../../../lab/experiment/types.ts";
import { isSuite } from "../../../lab/suite/read.ts";
import { meanSequenceTokens, type PreparedTrace } from "../../../lab/experiment/workload.ts";
import { describeProvenance } from "../../../workload/trace/provenance.ts";
import type { Colours, Terminal } from "../../terminal.ts";
import { numberList, textList, wholeNumber } from "./options.ts";
import { type ExperimentFile, experimentOf, invalid, readExperimentTrace, readInputFile } from "./experiment-file.ts";
import { checkFleets, fleetPlans, planLines } from "./plan.ts";
import { type PublishedTable, readPublishedTable } from "./published-table.ts";
import { comparisonJson, comparisonLines } from "./render-comparison.ts";
import { remarks, resultsTable } from "./render.ts";
import { type RunOutcome, runExperiment } from "./run-experiment.ts";
import { runSuite, SUITE_ONLY, type SuiteOptions } from "./suite/command.ts";

interface RunOptions extends SuiteOptions {
  readonly on: string;
  readonly plan?: boolean;
  readonly comparePublished?: boolean;
  readonly levels?: readonly number[];
  readonly workers?: readonly number[];
  readonly arms?: readonly string[];
  readonly runs?: number;
}

/** `warmpath run`: an experiment, from its file to a results folder. */
export function runCommand(terminal: Terminal): Command {
  return new Command("run")
    .description("Run an experiment: arms x levels x runs, on the simulated twin.")
    .argument("<experiment>", "an experiment or suite file, or the name of a preset")
    .option("--on <target>", "where: simulation", "simulation")
    .option("--out <folder>", "write results.json, provenance.json and records.jsonl.gz there")
    .option("--plan", "print the memory plan and run nothing")
    .option("--compare-published", "print the preset's published table beside the results")
    .option("--levels <list>", "only these levels, such as 60,120", numberList("--levels"))
    .option("--workers <list>", "only these numbers of workers", numberList("--workers"))
    .option("--arms <list>", "only these arms, by name", textList("--arms"))
    .option("--runs <count>", "so many runs instead of the file's", wholeNumber("--runs"))
    .option("--threads <count>", "cells at a time", wholeNumber("--threads"), availableParallelism())
    .option("--json", "print the result as JSON")
    .option("--quick", "of a suite: a small part of it, in minutes")
    .option("--policies <list>", "of a suite: only these policies, and round-robin", textList("--policies"))
    .option("--only <list>", "of a suite: only cells whose name has one of these texts", textList("--only"))
    .option("--candidate <policy>", "of a suite: the policy that is judged; warmpath unless told")
    .option("--set <knob>", "of a suite: policy.knob=value, again for more", collect)
    .option("--also <arm>", "of a suite: one more arm, policy.knob=value,knob=value", collect)
    .option("--tune", "of a suite: search the best settings of the rivals and write them beside the suite")
    .helpOption("-h, --help", "print this help")
    .addHelpText(
      "after",
      [
        "",
        "Examples:",
        "  $ warmpath run h200-sweep --compare-published",
        "  $ warmpath run h100-brief --plan",
        "  $ warmpath run policy-suite --quick",
        "  $ warmpath run policy-suite --only long-context,bursts --policies product,kv-cost",
        "  $ warmpath run experiment.yaml --on simulation --levels 60 --runs 1 --out results/first",
      ].join("\n"),
    )
    .action((name: string, options: RunOptions) => run(name, options, terminal));
}

async function run(name: string, options: RunOptions, terminal: Terminal): Promise<void> {
  if (options.on !== "simulation") {
    throw invalid(`--on ${options.on} is not available; there is simulation`);
  }
  const input = await readInputFile(name);
  if (isSuite(input.content)) {
    refuse(EXPERIMENT_ONLY, options, `${name} is a suite`);
    return runSuite(input, options, terminal);
  }
  refuse(SUITE_ONLY, options, `${name} is not a suite`);
  const file = experimentOf(input, terminal);
  const experiment = narrowed(file.experiment, options);
  const trace = await readExperimentTrace(file);
  const tokensPerSequence = meanSequenceTokens(experiment.workload, trace, experiment.seed);
  if (options.plan === true) return printPlan({ ...file, experiment }, tokensPerSequence, options, terminal);
  const table = options.comparePublished === true ? await readPublishedTable(file, trace) : undefined;
  checkFleets(experiment, tokensPerSequence);
  const outcome = await runExperiment({
    setting: { experiment, trace, tokensPerSequence },
    out: options.out,
    threads: options.threads,
    command: ["warmpath", "run", name, ...process.argv.slice(process.argv.indexOf(name) + 1)].join(" "),
    version: packageVersion(),
  });
  if (options.json === true)
    terminal.print(JSON.stringify(outcomeJson(experiment.name, outcome, table, options), null, 2));
  else
    for (const line of outcomeLines(experiment, trace, outcome, table, options, terminal.colours)) terminal.print(line);
  if (outcome.interrupted) outcome.raiseAgain();
}

const EXPERIMENT_ONLY = ["plan", "comparePublished", "levels", "workers", "arms", "runs"] as const;

/** An option that would be ignored is refused. */
function refuse(names: readonly (keyof RunOptions)[], options: RunOptions, why: string): void {
  const given = names.find((name) => options[name] !== undefined);
  if (given === undefined) return;
  const flag = given.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw invalid(`--${flag} has no effect: ${why}`);
}

function collect(written: string, before: readonly string[] = []): string[] {
  return [...before, written];
}

function outcomeLines(
  experiment: Experiment,
  trace: PreparedTrace | undefined,
  outcome: RunOutcome,
  table: PublishedTable | undefined,
  options: RunOptions,
  colours: Colours,
): string[] {
  const lines = trace === undefined ? [] : [`trace: ${describeProvenance(trace.provenance)}`];
  lines.push(...resultsTable(outcome.cells, colours), ...remarks(outcome.cells, experiment.arms));
  lines.push(summaryLine(outcome, options.out));
  if (table?.refusal !== undefined) lines.push("", table.refusal);
  if (table?.study !== undefined) {
    lines.push("", ...comparisonLines(table.study, comparePublished(table.study, outcome.cells), colours));
  }
  return lines;
}

function outcomeJson(
  experiment: string,
  { cells, planned, seconds, interrupted }: RunOutcome,
  table: PublishedTable | undefined,
  { out = null }: { readonly out?: string | null },
): object {
  const published =
    table?.study === undefined
      ? { refusal: table?.refusal }
      : comparisonJson(table.study, comparePublished(table.study, cells));
  return {
    experiment,
    out,
    cellsPlanned: planned,
    cellsFinished: cells.length,
    interrupted,
    wallSeconds: seconds,
    cells,
    ...(table === undefined ? {} : { published }),
  };
}

function printPlan(file: ExperimentFile, tokensPerSequence: number, options: RunOptions, terminal: Terminal): void {
  const plans = fleetPlans(file.experiment, tokensPerSequence);
  if (options.json === true) terminal.print(JSON.stringify({ experiment: file.experiment.name, plans }, null, 2));
  else for (const line of planLines(plans)) terminal.print(line);
  // The plan is shown in any case; that it cannot run is the exit code's and the last line's to say.
  checkFleets(file.experiment, tokensPerSequence);
}

function summaryLine({ cells, planned, seconds, interrupted }: RunOutcome, out: string | undefined): string {
  const requests = cells.reduce((sum, { accounting }) => sum + accounting.offered, 0);
  const done = interrupted ? `stopped: ${cells.length} of ${planned} cells` : `${cells.length} cells`;
  const where = out === undefined ? "nothing was written (--out FOLDER keeps it)" : `written to ${out}`;
  return `${done}, ${requests} requests in the windows, ${seconds.toFixed(1)} s; ${where}`;
}

function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../../../package.json", import.meta.url), "utf8"));
  return (manifest as { version: string }).version;
}
