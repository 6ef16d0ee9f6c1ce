import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Command } from "commander";
import { NS_PER_SECOND } from "../../../core/clock.ts";
import { checkAccounting } from "../../../measure/accounting.ts";
import type { LoadRun, LoadSummary } from "../../../loadgen/types.ts";
import type { Terminal } from "../../terminal.ts";
import { writingTo } from "../../writing.ts";
import { progressWriter } from "../run/progress.ts";
import { prepareLoad } from "./compose.ts";
import { addPageOptions, LoadPage, splitPageFlags } from "./live-page.ts";
import { serveMetrics } from "./metrics-server.ts";
import { type LoadOutcome, outcomeJson, outcomeLines, progressLine } from "./render.ts";
import { loadSettingKeys, readLoadSettings } from "./settings.ts";
import { startPrepared } from "./start.ts";

const PROGRESS_MS = 1000;
const SUMMARY_FILE = "summary.json";
/** From when on another Ctrl-C is one: some programs pass on what reaches this one anyway. The last one loses the summary. */
const AGAIN_MS = 250;
const GIVE_UP_MS = 3000;

/** `warmpath load`: conversation load against an endpoint. */
export function loadCommand(terminal: Terminal): Command {
  const command = new Command("load").description(
    "Send multi-turn conversations to an OpenAI-compatible endpoint and measure what comes back.",
  );
  for (const { flag, about, default: value } of loadSettingKeys()) {
    command.option(`${flag} <value>`, value === "" ? about : `${about} (default ${value})`);
  }
  return addPageOptions(command)
    .option("--json", "print the summary as JSON")
    .helpOption("-h, --help", "print this help")
    .addHelpText(
      "after",
      [
        "",
        "On a terminal a number and Enter changes the concurrency; Ctrl-C stops, once more cuts off what is under way.",
        "API keys are read from WARMPATH_API_KEY and WARMPATH_USER_MODEL_API_KEY.",
        "",
        "Examples:",
        "  $ warmpath load --url http://127.0.0.1:8000 --concurrency 60 --duration 5m --out results/load",
        "  $ warmpath load --url http://127.0.0.1:8000 --rate 2 --turns 1 --max-tokens 100 --json",
        "  $ warmpath load --url http://127.0.0.1:8000 --schedule toolagent_trace.jsonl --speed 0.8 --processes 2",
      ].join("\n"),
    )
    .action((options: Record<string, unknown>) => load(options, terminal));
}

async function load({ json, ...flags }: Record<string, unknown>, terminal: Terminal): Promise<void> {
  const [pageFlags, loadFlags] = splitPageFlags(flags);
  const settings = readLoadSettings(loadFlags);
  const prepared = await prepareLoad(settings, terminal);
  const ui = pageFlags.ui === true ? new LoadPage(pageFlags, prepared) : undefined;
  const started = await startPrepared(prepared, (line) => terminal.printError(line), ui?.record);
  const { run, metrics } = started;
  const { metricsPort, metricsHost, out } = settings;
  const server =
    metricsPort === undefined
      ? undefined
      : await serveMetrics(metrics, metricsHost, metricsPort).catch(async (error: unknown) => {
          await run.stop({ drainMs: 0 });
          await started.close();
          throw error;
        });
  if (server !== undefined) terminal.printError(`metrics  ${server.url}`);
  const page = await ui?.serve(run).catch(async (error: unknown) => {
    await run.stop({ drainMs: 0 });
    await started.close();
    await server?.close();
    throw error;
  });
  if (page !== undefined) terminal.printError(`page     ${page.url}`);
  const { summary, interrupted, release } = await untilOver(run, settings.drain, terminal);
  await page?.close();
  const problems = await problemsOf(() => writingTo(`--out ${out}`, started.close));
  await server?.close();
  checkAccounting(summary.totals.accounts(), "the load");
  const outcome: LoadOutcome = { summary, prepared, interrupted, userFailures: started.userFailures() };
  const written = JSON.stringify(outcomeJson(outcome), null, 2);
  if (out !== undefined) {
    const write = (): Promise<void> => writeFile(join(out, SUMMARY_FILE), `${written}\n`);
    problems.push(...(await problemsOf(() => writingTo(`--out ${out}`, write))));
  }
  if (json === true) terminal.print(written);
  else {
    for (const line of outcomeLines(outcome, terminal.colours)) terminal.print(line);
    if (out !== undefined && problems.length === 0) terminal.print(`written to ${out}`);
  }
  release();
  if (problems.length > 0) throw problems[0];
}

/** What went wrong with something that must not cost the summary, as a disk that is full. */
async function problemsOf(attempt: () => Promise<void>): Promise<unknown[]> {
  try {
    await attempt();
    return [];
  } catch (problem) {
    return [problem];
  }
}

/** A run that is over. */
interface OverRun {
  readonly summary: LoadSummary;
  readonly interrupted: boolean;
  /** Gives Ctrl-C back; not before the summary is out, which it would cost. */
  readonly release: () => void;
}

/** Shows how it goes and follows what is typed, until the run is over by itself or by Ctrl-C. */
async function untilOver(run: LoadRun, drainSeconds: number, terminal: Terminal): Promise<OverRun> {
  const write = progressWriter();
  const show = (): void =>
    write(`\r\u001b[K${progressLine(run.rolling(), Math.max(0, run.nowNs()) / NS_PER_SECOND, run.concurrency)}`);
  const timer = setInterval(show, PROGRESS_MS);
  let interrupts = 0;
  let lastMs = -Infinity;
  const interrupt = (): void => {
    const sinceMs = performance.now() - lastMs;
    if (sinceMs < (interrupts < 2 ? AGAIN_MS : GIVE_UP_MS)) return;
    lastMs = performance.now();
    interrupts += 1;
    if (interrupts > 2) process.exit(130);
    const { inFlight } = run.rolling();
    const drainMs = interrupts === 1 ? drainSeconds * 1000 : 0;
    if (interrupts === 1 && inFlight > 0 && drainMs > 0) {
      write("\r\u001b[K");
      terminal.printError(`stopping: ${inFlight} requests under way have ${drainSeconds} s; Ctrl-C cuts them off`);
    }
    void run.stop({ drainMs });
  };
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", interrupt);
  const typed = process.stdin.isTTY ? followTyping(run, terminal) : undefined;
  const summary = await run.finished;
  clearInterval(timer);
  write("\r\u001b[K");
  typed?.close();
  const release = (): void => {
    process.off("SIGINT", interrupt);
    process.off("SIGTERM", interrupt);
  };
  return { summary, interrupted: interrupts > 0, release };
}

/** A number and Enter is a new concurrency. */
function followTyping(run: LoadRun, terminal: Terminal): { close(): void } {
  const lines = createInterface({ input: process.stdin });
  lines.on("line", (line) => {
    const wanted = Number(line.trim());
    if (line.trim() === "") return;
    if (run.concurrency === undefined) terminal.printError("this load follows a schedule; it has no concurrency");
    else if (Number.isInteger(wanted) && wanted >= 0) run.setConcurrency(wanted);
    else terminal.printError(`type a whole number to change the concurrency, not "${line.trim()}"`);
  });
  return lines;
}
