import { cellsOf } from "../../../lab/experiment/cells.ts";
import type { Experiment } from "../../../lab/experiment/types.ts";
import { conversationParameters, type PreparedTrace } from "../../../lab/experiment/workload.ts";
import type { CellResult, Json } from "../../../lab/results/types.ts";
import { type FinishedCell, type JobSetting, runCellJob } from "./cell-job.ts";
import type { LiveTarget } from "../../../lab/live/target.ts";
import { writingTo } from "../../writing.ts";
import { twinCodeDigest } from "./code-digest.ts";
import { interruptHandler } from "./interrupt.ts";
import { type RefusedArms, runLiveCells } from "./live/run-live-cells.ts";
import { fleetPlans } from "./plan.ts";
import { Progress, progressWriter } from "./progress.ts";
import { ResultsFolder, type RunIdentity } from "./results-folder.ts";
import type { SimulationSetting } from "./simulated-cell.ts";
import { runJobs } from "./thread-pool.ts";

/** An experiment to be run. */
export interface RunRequest {
  readonly setting: SimulationSetting;
  /** Where; the twin unless told. */
  readonly target?: LiveTarget | undefined;
  readonly out: string | undefined;
  /** Whether cells that an earlier run has finished are run again. */
  readonly fresh: boolean;
  readonly threads: number;
  /** The command that repeats the run. */
  readonly command: string;
  /** Folder of the experiment's file; absent for presets. */
  readonly experimentFolder?: string | undefined;
  readonly version: string;
  /** Told what happens meanwhile, one line each. */
  readonly say: (line: string) => void;
}

/** What came of a run; fewer cells than planned if it was interrupted. */
export interface RunOutcome {
  readonly cells: readonly CellResult[];
  readonly planned: number;
  /** Of the cells, those that an earlier run had finished. */
  readonly resumed: number;
  readonly refused: RefusedArms;
  readonly seconds: number;
  readonly interrupted: boolean;
  /** Ends the process by the interrupt that was held back until the cells were on disk. */
  raiseAgain(): void;
}

const STOP_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Runs all cells of an experiment; an interrupt ends it early, with what is finished on disk. */
export async function runExperiment(request: RunRequest): Promise<RunOutcome> {
  const { setting, target, out, fresh, say } = request;
  const cells = cellsOf(setting.experiment);
  const open = (at: string): Promise<ResultsFolder> => ResultsFolder.open(at, identityOf(request), fresh);
  const writing = <Written>(write: () => Promise<Written>): Promise<Written> =>
    out === undefined ? write() : writingTo(`--out ${out}`, write);
  const folder = out === undefined ? undefined : await writing(() => open(out));
  const finished: FinishedCell[] = [...(folder?.finished ?? [])];
  const resumed = finished.length;
  if (resumed > 0) say(`${resumed} of ${cells.length} cells were finished before; going on with the rest`);
  const done = new Set(finished.map(({ index }) => index));
  const missing = cells.flatMap((_, index) => (done.has(index) ? [] : index));
  const progress = new Progress(missing.length, progressWriter());
  const interrupt = new AbortController();
  const handler = interruptHandler(interrupt, target === undefined ? undefined : say);
  // The twin has nothing to put back, so it may be ended in the usual way by all but Ctrl-C.
  const signals = target === undefined ? STOP_SIGNALS.slice(0, 1) : STOP_SIGNALS;
  for (const name of signals) process.on(name, handler);
  const startedMs = performance.now();
  const onFinished = async (cell: FinishedCell): Promise<void> => {
    finished.push(cell);
    progress.finished(cell.result.id);
    await writing(async () => folder?.add(cell));
  };
  let refused: RefusedArms = new Map();
  let isOver = false;
  try {
    const { signal } = interrupt;
    if (target === undefined) {
      const jobs: JobSetting = { ...setting, cells, missing, recordsFolder: folder?.partsFolder };
      const thread = new URL("./cell-thread.js", import.meta.url);
      const work = { thread, setting: jobs, jobs: missing.length, run: runCellJob };
      await writing(() => runJobs(work, request.threads, { signal, finished: onFinished }));
    } else {
      refused = await runLiveCells({
        experiment: setting.experiment,
        trace: setting.trace,
        cells,
        finished: folder?.finished.slice() ?? [],
        target,
        recordsFolder: folder?.partsFolder,
        signal,
        say,
        onFinished,
        onFrame: (frame) => folder?.describe(frame),
      });
    }
    isOver = true;
  } finally {
    for (const name of signals) process.off(name, handler);
    progress.end();
    await writing(async () => folder?.close(finished.length === cells.length));
    if (!isOver && out !== undefined && finished.length > 0) {
      say(`${finished.length} of ${cells.length} cells are kept in ${out}; the same command goes on with the rest`);
    }
  }
  finished.sort((a, b) => a.index - b.index);
  return {
    cells: finished.map(({ result }) => result),
    planned: cells.length,
    resumed,
    refused,
    seconds: (performance.now() - startedMs) / 1000,
    interrupted: interrupt.signal.aborted,
    raiseAgain: () => void process.kill(process.pid, "SIGINT"),
  };
}

function identityOf({ setting, target, out, command, experimentFolder, version }: RunRequest): RunIdentity {
  const { experiment, trace, tokensPerSequence } = setting;
  return {
    experiment: experiment.name,
    config: resolvedConfig(experiment, trace, tokensPerSequence),
    ...(target === undefined ? {} : { target: target.name }),
    code: out === undefined || target !== undefined ? version : twinCodeDigest(),
    command,
    experimentFolder,
    version,
  };
}

/** The experiment with every default, what the trace was made of, and the KV pools: all that fixes the results. */
function resolvedConfig(
  experiment: Experiment,
  trace: PreparedTrace | undefined,
  tokensPerSequence: number,
): { readonly [key: string]: Json } {
  const conversations = conversationParameters(experiment.workload);
  const pools = fleetPlans(experiment, tokensPerSequence).map(({ arms, plan }) => ({
    arms,
    poolTokens: plan.poolTokens,
    poolBlocks: plan.poolBlocks,
  }));
  const resolved = {
    ...experiment,
    workload: {
      ...experiment.workload,
      ...(conversations === undefined ? {} : { conversationParameters: conversations }),
    },
    kvPools: pools,
    tokensPerSequence,
    ...(trace === undefined ? {} : { traceProvenance: trace.provenance }),
  };
  // Through JSON, which drops what is undefined: only what is set is part of the configuration.
  return JSON.parse(JSON.stringify(resolved)) as { [key: string]: Json };
}
