import { existsSync } from "node:fs";
import { join } from "node:path";
import type { AdmissionMode } from "../../../../core/admission/types.ts";
import { WarmpathError } from "../../../../core/errors.ts";
import { checkJitter } from "../../../../lab/experiment/trace.ts";
import { candidateArm, DEFAULT_CANDIDATE, REFERENCE, USUAL_CONDITIONS, suiteArms } from "../../../../lab/suite/arms.ts";
import { spreadCells, suiteCells } from "../../../../lab/suite/design.ts";
import { leagueOf } from "../../../../lab/suite/league.ts";
import { type Bench, benchOf, perturbedFleet } from "../../../../lab/suite/plan.ts";
import { readSuite, readTunedRivals } from "../../../../lab/suite/read.ts";
import { groupTable, leagueTable, type Table, worstCells } from "../../../../lab/suite/tables.ts";
import type { Suite, SuiteArm, SuiteCell, SuiteConditions, SuiteSize } from "../../../../lab/suite/types.ts";
import { tableLines } from "../../../table.ts";
import type { Terminal } from "../../../terminal.ts";
import { writingTo } from "../../../writing.ts";
import { allOf, type InputFile, invalid, parseYaml, readText, readTrace, whereTraceIsNot } from "../experiment-file.ts";
import { interruptHandler } from "../interrupt.ts";
import { checkFleet } from "../simulated-fleet.ts";
import { JobKeys } from "./job-key.ts";
import { Journal } from "./journal.ts";
import { reportJson, type SuiteReport, verdictLines, writeReport } from "./report.ts";
import { scoreCells } from "./score-cells.ts";
import { checkSuiteFolder, JOURNAL_FILE } from "./suite-folder.ts";
import { tuneRivals } from "./tune.ts";

/** What the command line says of a suite. */
export interface SuiteOptions {
  readonly out?: string;
  readonly threads: number;
  readonly json?: boolean;
  readonly quick?: boolean;
  readonly policies?: readonly string[];
  readonly only?: readonly string[];
  readonly candidate?: string;
  readonly set?: readonly string[];
  readonly also?: readonly string[];
  readonly tune?: boolean;
  readonly admission?: AdmissionMode;
  readonly withoutKvEvents?: boolean;
}

/** Options that mean nothing to an experiment. */
export const SUITE_ONLY = [
  "quick",
  "policies",
  "only",
  "candidate",
  "set",
  "also",
  "tune",
  "admission",
  "withoutKvEvents",
] as const;

const SHOWN_WORST = 5;

/** Runs a suite on the twin: league and regret tables on disk, the short of it on the terminal. */
export async function runSuite(file: InputFile, options: SuiteOptions, terminal: Terminal): Promise<void> {
  const { suite, problems } = readSuite(file.content);
  if (suite === undefined) throw allOf(problems, file.source, terminal);
  const size = options.quick === true ? suite.quick : suite.full;
  const out = options.out ?? join("results", options.quick === true ? `${suite.suite}-quick` : suite.suite);
  const { benches, skipped } = await readBenches(suite, file.folder);
  const say = (line: string): void => (options.json === true ? undefined : terminal.print(line));
  for (const line of skipped) say(`left out: ${line}`);
  const interrupt = new AbortController();
  const onInterrupt = interruptHandler(interrupt);
  process.on("SIGINT", onInterrupt);
  try {
    const setting = { suite, size, benches, skipped, out, signal: interrupt.signal, say };
    if (options.tune === true) await tune(setting, file, options);
    else await judge(setting, file, options, terminal);
  } finally {
    process.off("SIGINT", onInterrupt);
  }
  if (interrupt.signal.aborted) process.kill(process.pid, "SIGINT");
}

interface SuiteSetting {
  readonly suite: Suite;
  readonly size: SuiteSize;
  readonly benches: readonly Bench[];
  readonly skipped: readonly string[];
  readonly out: string;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

async function judge(setting: SuiteSetting, file: InputFile, options: SuiteOptions, terminal: Terminal): Promise<void> {
  const { suite, size, benches, skipped, out, signal, say } = setting;
  const { threads } = options;
  const conditions = conditionsOf(options);
  const arms = suiteArms(suite, await tunedRivals(suite, file.folder), options);
  const candidate = candidateArm(arms, options.candidate);
  const cells = chosenCells(suiteCells(suite, size), benches, options.only);
  checkCells(cells, benches);
  const perturbed = cells.filter(({ perturbation }) => perturbation !== undefined).length;
  say(
    `${cells.length} cells (${perturbed} perturbed) x ${arms.length} arms x ${size.runs} runs${describeConditions(conditions)}, kept in ${out}`,
  );
  const startedMs = performance.now();
  const keys = new JobKeys([policyOf(arms, candidate)]);
  const journal = await openJournal(out, suite);
  const scored = await scoreCells({ suite, size, benches, cells, arms, conditions, keys, journal, threads, signal });
  const report: SuiteReport = {
    suite: suite.suite,
    quick: options.quick === true,
    candidate,
    conditions,
    planned: cells.length,
    cells: scored,
    league: leagueOf(arms, scored, REFERENCE, suite.parts),
    skipped,
  };
  await writeReport(out, report);
  if (options.json === true) terminal.print(JSON.stringify(reportJson(report), null, 2));
  else for (const line of shortLines(report, terminal)) terminal.print(line);
  const done = signal.aborted ? `stopped: ${scored.length} of ${cells.length} cells` : `${scored.length} cells`;
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  say(`${done}, ${seconds} s; league.md, regret.md and suite.json in ${out}`);
}

async function tune(
  { suite, benches, out, signal, say }: SuiteSetting,
  file: InputFile,
  options: SuiteOptions,
): Promise<void> {
  const { tuning } = suite;
  if (tuning === undefined) throw invalid(`${file.source} does not say how rivals are tuned: it has no tuning`);
  // Settings found under others would stand in the same file, and be taken for the usual ones.
  if (options.admission !== undefined || options.withoutKvEvents === true) {
    throw invalid(
      "--admission and --without-kv-events do not go with --tune: rivals are tuned under the usual conditions",
    );
  }
  checkCells(spreadCells(suite, suite.full, tuning.cells), benches);
  await tuneRivals({
    suite,
    tuning,
    benches,
    path: join(file.folder, suite.tunedRivals),
    keys: new JobKeys([options.candidate ?? DEFAULT_CANDIDATE]),
    journal: await openJournal(out, suite),
    threads: options.threads,
    signal,
    say,
  });
}

/** What is finished already; whether there is a place for the rest is found out before anything is run. */
async function openJournal(out: string, { suite }: Suite): Promise<Journal> {
  await checkSuiteFolder(out, suite);
  return writingTo(`--out ${out}`, () => Promise.resolve().then(() => new Journal(join(out, JOURNAL_FILE))));
}

/** Workloads whose traces are there; the others are named, never replaced. */
async function readBenches(suite: Suite, folder: string): Promise<{ benches: Bench[]; skipped: string[] }> {
  const benches: Bench[] = [];
  const skipped: string[] = [];
  for (const workload of suite.workloads) {
    const { trace } = workload.workload;
    const prepared = trace === undefined ? undefined : await readTrace(trace, folder);
    if (trace !== undefined && prepared !== undefined) checkJitter(trace, prepared, [{ name: workload.name }]);
    if (trace !== undefined && prepared === undefined) skipped.push(`${workload.name}: ${whereTraceIsNot(trace)}`);
    else benches.push(benchOf(suite, workload, prepared));
  }
  return { benches, skipped };
}

async function tunedRivals({ tunedRivals: name }: Suite, folder: string): Promise<SuiteArm[]> {
  const path = join(folder, name);
  return existsSync(path) ? readTunedRivals(parseYaml(await readText(path), name), name) : [];
}

function chosenCells(
  cells: readonly SuiteCell[],
  benches: readonly Bench[],
  only: readonly string[] | undefined,
): SuiteCell[] {
  const present = new Set(benches.map(({ workload }) => workload.name));
  const chosen = cells.filter(
    ({ id, workload }) => present.has(workload) && (only?.some((text) => id.includes(text)) ?? true),
  );
  if (chosen.length === 0) throw invalid(`no cell of the suite has ${only?.join(" or ") ?? "data"}`);
  return chosen;
}

/** Refuses a suite with a fleet that could not run, before anything is run. */
function checkCells(cells: readonly SuiteCell[], benches: readonly Bench[]): void {
  for (const { id, workload, workers, perturbation = { name: "none" } } of cells) {
    const bench = benches.find((one) => one.workload.name === workload);
    if (bench === undefined) continue;
    try {
      checkFleet(perturbedFleet(bench, perturbation), workers, bench.tokensPerSequence);
    } catch (error) {
      if (!WarmpathError.isInstance(error)) throw error;
      throw invalid(`${id}: ${error.message}`, error);
    }
  }
}

function conditionsOf({ admission = USUAL_CONDITIONS.admission, withoutKvEvents }: SuiteOptions): SuiteConditions {
  return { admission, kvEvents: withoutKvEvents !== true };
}

/** What is not as usual. */
function describeConditions({ admission, kvEvents }: SuiteConditions): string {
  return `${admission === USUAL_CONDITIONS.admission ? "" : `, admission ${admission}`}${kvEvents ? "" : ", no KV events"}`;
}

function policyOf(arms: readonly SuiteArm[], name: string): string {
  return arms.find((arm) => arm.name === name)?.policy ?? name;
}

function shortLines(report: SuiteReport, terminal: Terminal): string[] {
  const { league, cells, candidate } = report;
  const row = league.find(({ arm }) => arm.name === candidate);
  if (row === undefined || cells.length === 0) return [];
  const lines = (table: Table): string[] =>
    tableLines(
      table.titles.map((title, at) => ({ title, align: at === 0 ? "left" : "right" })),
      table.rows.map((cellsOfRow) => ({ cells: cellsOfRow, highlighted: cellsOfRow[0] === candidate })),
      terminal.colours,
    );
  return [
    "",
    ...lines(leagueTable(league)),
    "",
    ...lines(groupTable(row, cells, candidate, ({ cell }) => cell.workload)),
    "",
    ...lines(worstCells(row, league, cells, "ttftP95Ms", SHOWN_WORST)),
    "",
    ...lines(worstCells(row, league, cells, "e2eMeanMs", SHOWN_WORST)),
    "",
    ...verdictLines(report),
  ];
}
