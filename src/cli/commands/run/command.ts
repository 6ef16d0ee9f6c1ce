import { availableParallelism } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { ADMISSION_MODES } from "../../../core/admission/types.ts";
import { narrowed } from "../../../lab/experiment/cells.ts";
import { changed, type Changes } from "../../../lab/experiment/changes.ts";
import { comparePublished } from "../../../lab/experiment/compare-published.ts";
import { LEAST_WINDOW_SECONDS, MOST_RUNS } from "../../../lab/experiment/limits.ts";
import { checkJitter } from "../../../lab/experiment/trace.ts";
import type { CacheState, CellOrder, Experiment } from "../../../lab/experiment/types.ts";
import type { LiveTarget } from "../../../lab/live/target.ts";
import { unswitchedArms } from "../../../lab/live/unswitched-arms.ts";
import { isSuite } from "../../../lab/suite/read.ts";
import { meanSequenceTokens, type PreparedTrace } from "../../../lab/experiment/workload.ts";
import { describeProvenance } from "../../../workload/trace/provenance.ts";
import { packageVersion } from "../../package-version.ts";
import { shellLine } from "../../shell-words.ts";
import type { Colours, Terminal } from "../../terminal.ts";
import { collectInput } from "../report/collect-input.ts";
import { AIPERF_FOLDER, writeAiperf } from "../report/write-aiperf.ts";
import { EndpointTarget } from "./endpoint/endpoint-target.ts";
import { LocalTarget } from "./local/local-target.ts";
import { count, duration, numberList, oneOf, textList, wholeNumber } from "./options.ts";
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
  readonly warmUp?: number;
  readonly warmUpRequests?: number;
  readonly window?: number;
  readonly drain?: number;
  readonly cacheState?: CacheState;
  readonly order?: CellOrder;
  readonly fresh?: boolean;
  readonly aiperf?: boolean;
}

/** `warmpath run`: an experiment, from its file to a results folder. */
export function runCommand(terminal: Terminal): Command {
  return new Command("run")
    .description("Run an experiment: arms x levels x runs, on the simulated twin, a local fleet or an endpoint.")
    .argument("<experiment>", "an experiment or suite file, or the name of a preset")
    .option(
      "--on <target>",
      "where: simulation, local (a fleet in real time), or the address of an endpoint",
      "simulation",
    )
    .option(
      "--out <folder>",
      "write results.json, provenance.json and records.jsonl.gz there; goes on with a run cut short",
    )
    .option("--fresh", "run cells again that an earlier run in that folder has finished")
    .option(
      "--aiperf",
      "also write AIPerf's files of every cell, below aiperf/ in that folder; of runs that repeat one another, of the first",
    )
    .option("--plan", "print the memory plan and run nothing")
    .option("--compare-published", "print the preset's published table beside the results")
    .option("--levels <list>", "only these levels, such as 60,120", numberList("--levels"))
    .option("--workers <list>", "only these numbers of workers", numberList("--workers"))
    .option("--arms <list>", "only these arms, by name", textList("--arms"))
    .option("--runs <count>", "so many runs instead of the file's", wholeNumber("--runs", MOST_RUNS))
    .option("--warm-up <seconds>", "time before the window instead of the file's", duration("--warm-up"))
    .option("--warm-up-requests <count>", "on a live target: requests before the window", count("--warm-up-requests"))
    .option(
      "--window <seconds>",
      "time that is measured instead of the file's",
      duration("--window", LEAST_WINDOW_SECONDS),
    )
    .option("--drain <seconds>", "time for answers after the window instead of the file's", duration("--drain"))
    .option(
      "--cache-state <state>",
      "cold, primed or carried-over instead of the file's",
      oneOf("--cache-state", CACHE_STATES),
    )
    .option("--order <order>", "on a live target: by-arm or interleaved", oneOf("--order", ORDERS))
    .option("--threads <count>", "cells at a time", wholeNumber("--threads", MOST_THREADS), availableParallelism())
    .option("--json", "print the result as JSON")
    .option("--quick", "of a suite: a small part of it, in minutes")
    .option("--policies <list>", "of a suite: only these policies, and round-robin", textList("--policies"))
    .option("--only <list>", "of a suite: only cells whose name has one of these texts", textList("--only"))
    .option("--candidate <policy>", "of a suite: the policy that is judged; warmpath unless told")
    .option("--set <knob>", "of a suite: policy.knob=value, again for more", collect)
    .option("--also <arm>", "of a suite: one more arm, policy.knob=value,knob=value", collect)
    .option(
      "--admission <mode>",
      "of a suite: engine, queue or shed for all arms; engine unless told",
      oneOf("--admission", ADMISSION_MODES),
    )
    .option("--without-kv-events", "of a suite: engines tell nothing of their caches")
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
        "  $ warmpath run h200-sweep --on local --levels 60,120 --runs 1 --window 120 --cache-state cold --out results/live",
        "  $ warmpath run experiment.yaml --on http://127.0.0.1:8000 --out results/endpoint",
      ].join("\n"),
    )
    .action((name: string, options: RunOptions, command: Command) => {
      // All words that were given, wherever options stand.
      const words = command.parent?.args ?? ["run", name];
      return run(name, options, shellLine(["warmpath", ...words]), terminal);
    });
}

async function run(name: string, options: RunOptions, command: string, terminal: Terminal): Promise<void> {
  const isAddress = /^https?:\/\//.test(options.on) && URL.canParse(options.on);
  if (!["simulation", "local"].includes(options.on) && !isAddress) {
    throw invalid(
      `--on ${options.on} is not available; there are simulation, local and addresses such as http://HOST:PORT`,
    );
  }
  const input = await readInputFile(name);
  if (isSuite(input.content)) {
    if (options.on !== "simulation") throw invalid(`--on ${options.on} is not available: ${name} is a suite`);
    refuse(EXPERIMENT_ONLY, options, `${name} is a suite`);
    return runSuite(input, options, terminal);
  }
  refuse(SUITE_ONLY, options, `${name} is not a suite`);
  if (options.out === undefined) refuse(["aiperf"], options, "nothing is written without --out");
  const file = experimentOf(input, terminal);
  const isLive = options.on !== "simulation";
  if (!isLive) refuse(LIVE_ONLY, options, "--on simulation has no such thing");
  const experiment = changed(narrowed(file.experiment, options), changesOf(options));
  if (!isLive && experiment.cacheState === "primed") throw invalid("cacheState: primed needs a live target");
  const unswitched = isAddress ? unswitchedArms(experiment, options.on) : undefined;
  if (unswitched !== undefined) throw invalid(unswitched);
  const trace = await readExperimentTrace(file);
  if (trace !== undefined && experiment.workload.trace !== undefined)
    checkJitter(experiment.workload.trace, trace, experiment.arms);
  const tokensPerSequence = meanSequenceTokens(experiment.workload, trace, experiment.seed);
  if (options.plan === true) return printPlan({ ...file, experiment }, tokensPerSequence, options, terminal);
  const table = options.comparePublished === true ? await readPublishedTable(file, trace) : undefined;
  checkFleets(experiment, tokensPerSequence);
  const say = (line: string): void => terminal.printError(line);
  const outcome = await runExperiment({
    setting: { experiment, trace, tokensPerSequence },
    target: isLive ? targetOf(options.on, { ...file, experiment }, tokensPerSequence, say) : undefined,
    out: options.out,
    fresh: options.fresh === true,
    threads: options.threads,
    say,
    command,
    experimentFolder: file.preset === undefined ? file.folder : undefined,
    version: packageVersion(),
  });
  const hasWritten = outcome.cells.length > 0;
  if (options.aiperf === true && options.out !== undefined && hasWritten) await exportAiperf(options.out, say);
  if (options.json === true)
    terminal.print(JSON.stringify(outcomeJson(experiment.name, outcome, table, options), null, 2));
  else
    for (const line of outcomeLines(experiment, trace, outcome, table, options, terminal.colours)) terminal.print(line);
  if (outcome.interrupted) outcome.raiseAgain();
  const [refused] = outcome.refused;
  if (refused !== undefined) throw invalid(`arm ${refused[0]} was not measured: ${refused[1]}`);
}

/** Writes every finished cell as AIPerf would have. */
async function exportAiperf(out: string, say: (line: string) => void): Promise<void> {
  const input = await collectInput([out], { mode: "pool" });
  for (const problem of input.problems) say(problem);
  await writeAiperf(input, join(out, AIPERF_FOLDER));
}

/** Whatever is driven in real time. */
function targetOf(
  on: string,
  { experiment, folder }: ExperimentFile,
  tokensPerSequence: number,
  say: (line: string) => void,
): LiveTarget {
  if (on === "local") return new LocalTarget(tokensPerSequence);
  const { name, live = {}, cacheState } = experiment;
  return new EndpointTarget({ url: on, experiment: name, live, folder, isCold: cacheState !== "carried-over", say });
}

function changesOf({ warmUp, warmUpRequests, window, drain, cacheState, order }: RunOptions): Changes {
  return {
    warmUpSeconds: warmUp,
    warmUpRequests,
    windowSeconds: window,
    drainSeconds: drain,
    cacheState,
    order,
  };
}

const MOST_THREADS = 1024;
const CACHE_STATES = ["cold", "primed", "carried-over"] as const;
const ORDERS = ["by-arm", "interleaved"] as const;
const LIVE_ONLY = ["warmUpRequests", "order"] as const;
const EXPERIMENT_ONLY = [
  "plan",
  "comparePublished",
  "levels",
  "workers",
  "arms",
  "runs",
  "warmUp",
  "warmUpRequests",
  "window",
  "drain",
  "cacheState",
  "order",
  "fresh",
  "aiperf",
] as const;

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
  { cells, planned, resumed, refused, seconds, interrupted }: RunOutcome,
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
    ...(resumed === 0 ? {} : { cellsResumed: resumed }),
    ...(refused.size === 0 ? {} : { refused: Object.fromEntries(refused) }),
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

function summaryLine({ cells, planned, resumed, seconds, interrupted }: RunOutcome, out: string | undefined): string {
  const requests = cells.reduce((sum, { accounting }) => sum + accounting.offered, 0);
  const done = interrupted ? `stopped: ${cells.length} of ${planned} cells` : `${cells.length} cells`;
  const before = resumed === 0 ? "" : ` (${resumed} of them finished by an earlier run)`;
  const kept = cells.length === 0 ? `nothing was written to ${out}` : `written to ${out}`;
  const where = out === undefined ? "nothing was written (--out FOLDER keeps it)" : kept;
  return `${done}${before}, ${requests} requests in the windows, ${seconds.toFixed(1)} s; ${where}`;
}
