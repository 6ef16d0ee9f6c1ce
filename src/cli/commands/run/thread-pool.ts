import { Worker } from "node:worker_threads";
import { WarmpathError } from "../../../core/errors.ts";
import { type FinishedCell, type JobSetting, runCellJob } from "./cell-job.ts";
import type { ThreadAnswer } from "./cell-thread.ts";

/** Sources that are run as they are, without a build, have no file that a thread could load. */
const CAN_START_THREADS = import.meta.url.endsWith(".js");

/** How a pool is told to stop, and tells what it has done. */
export interface PoolWatch {
  readonly signal: AbortSignal;
  finished(cell: FinishedCell): Promise<void> | void;
}

/** Runs all cells, each in a thread of its own turn; resolves when all are done or it was told to stop. */
export async function runCells(setting: JobSetting, threads: number, watch: PoolWatch): Promise<void> {
  const count = Math.min(threads, setting.cells.length);
  if (count <= 1 || !CAN_START_THREADS) return runHere(setting, watch);
  let next = 0;
  const takeNext = (): number | undefined => {
    return watch.signal.aborted || next >= setting.cells.length ? undefined : next++;
  };
  const failure = new AbortController();
  const lanes = Array.from({ length: count }, () => runLane(setting, takeNext, watch, failure));
  await Promise.all(lanes);
}

async function runHere(setting: JobSetting, watch: PoolWatch): Promise<void> {
  for (let index = 0; index < setting.cells.length && !watch.signal.aborted; index++) {
    await watch.finished(await runCellJob(setting, index));
    // Lets an interrupt in, which a simulation that never waits would keep out.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** One thread, from its first cell to its last; ends at once when told to stop or when any thread has failed. */
async function runLane(
  setting: JobSetting,
  takeNext: () => number | undefined,
  watch: PoolWatch,
  failure: AbortController,
): Promise<void> {
  const thread = new Worker(new URL("./cell-thread.js", import.meta.url), { workerData: setting });
  const stop = AbortSignal.any([watch.signal, failure.signal]);
  const halt = (): void => void thread.terminate();
  stop.addEventListener("abort", halt);
  try {
    for (let index = takeNext(); index !== undefined && !stop.aborted; index = takeNext()) {
      thread.postMessage(index, []);
      const answer = await nextAnswer(thread);
      if (answer === undefined) break;
      await watch.finished(answer);
    }
  } catch (error) {
    failure.abort();
    throw error;
  } finally {
    stop.removeEventListener("abort", halt);
    await thread.terminate();
  }
}

/** The next answer of a thread; undefined if it was ended before it gave one. */
function nextAnswer(thread: Worker): Promise<FinishedCell | undefined> {
  return new Promise((resolve, reject) => {
    const settle = (settled: () => void): void => {
      thread.off("message", onMessage).off("error", onError).off("exit", onExit);
      settled();
    };
    const onMessage = (answer: ThreadAnswer): void => {
      if ("finished" in answer) settle(() => resolve(answer.finished));
      else settle(() => reject(failureOf(answer.failure)));
    };
    const onError = (error: Error): void => settle(() => reject(error));
    const onExit = (): void => settle(() => resolve(undefined));
    thread.on("message", onMessage).on("error", onError).on("exit", onExit);
  });
}

function failureOf({
  message,
  stack,
}: {
  readonly message: string;
  readonly stack: string | undefined;
}): WarmpathError {
  const error = new WarmpathError("WP_INVALID_STATE", message);
  if (stack !== undefined) error.stack = stack;
  return error;
}
