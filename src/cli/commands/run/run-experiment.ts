import { cellsOf } from "../../../lab/experiment/cells.ts";
import type { Experiment } from "../../../lab/experiment/types.ts";
import { conversationParameters, type PreparedTrace } from "../../../lab/experiment/workload.ts";
import type { CellResult, Json } from "../../../lab/results/types.ts";
import { type FinishedCell, type JobSetting, runCellJob } from "./cell-job.ts";
import { interruptHandler } from "./interrupt.ts";
import { fleetPlans } from "./plan.ts";
import { Progress, progressWriter } from "./progress.ts";
import { ResultsFolder } from "./results-folder.ts";
import type { SimulationSetting } from "./simulated-cell.ts";
import { runJobs } from "./thread-pool.ts";

/** An experiment to be run on the twin. */
export interface RunRequest {
  readonly setting: SimulationSetting;
  readonly out: string | undefined;
  readonly threads: number;
  /** The command that repeats the run. */
  readonly command: string;
  readonly version: string;
}

/** What came of a run; fewer cells than planned if it was interrupted. */
export interface RunOutcome {
  readonly cells: readonly CellResult[];
  readonly planned: number;
  readonly seconds: number;
  readonly interrupted: boolean;
  /** Ends the process by the interrupt that was held back until the cells were on disk. */
  raiseAgain(): void;
}

/** Runs all cells of an experiment; an interrupt ends it early, with what is finished on disk. */
export async function runExperiment({ setting, out, threads, command, version }: RunRequest): Promise<RunOutcome> {
  const { experiment, trace, tokensPerSequence } = setting;
  const cells = cellsOf(experiment);
  const config = resolvedConfig(experiment, trace, tokensPerSequence);
  const folder =
    out === undefined
      ? undefined
      : await ResultsFolder.create(out, { experiment: experiment.name, config, command, version });
  const progress = new Progress(cells.length, progressWriter());
  const finished: FinishedCell[] = [];
  const interrupt = new AbortController();
  const onInterrupt = interruptHandler(interrupt);
  process.on("SIGINT", onInterrupt);
  const startedMs = performance.now();
  try {
    const jobs: JobSetting = { ...setting, cells, recordsFolder: folder?.partsFolder };
    const thread = new URL("./cell-thread.js", import.meta.url);
    await runJobs({ thread, setting: jobs, jobs: cells.length, run: runCellJob }, threads, {
      signal: interrupt.signal,
      finished: async (cell) => {
        finished.push(cell);
        progress.finished(cell.result.id);
        await folder?.add(cell);
      },
    });
  } finally {
    process.off("SIGINT", onInterrupt);
    progress.end();
    await folder?.close();
  }
  finished.sort((a, b) => a.index - b.index);
  return {
    cells: finished.map(({ result }) => result),
    planned: cells.length,
    seconds: (performance.now() - startedMs) / 1000,
    interrupted: interrupt.signal.aborted,
    raiseAgain: () => void process.kill(process.pid, "SIGINT"),
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
