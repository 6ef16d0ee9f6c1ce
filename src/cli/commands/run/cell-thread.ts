/** A thread that runs cells: it is told a number, and answers with the cell's result. Started by thread-pool.ts. */
import { parentPort, workerData } from "node:worker_threads";
import { type FinishedCell, type JobSetting, runCellJob } from "./cell-job.ts";

/** What a thread says of a cell. */
export type ThreadAnswer =
  | { readonly finished: FinishedCell }
  | { readonly index: number; readonly failure: { readonly message: string; readonly stack: string | undefined } };

parentPort?.on("message", (index: number) => void answer(index));

async function answer(index: number): Promise<void> {
  let message: ThreadAnswer;
  try {
    message = { finished: await runCellJob(workerData as JobSetting, index) };
  } catch (error) {
    const failure =
      error instanceof Error
        ? { message: error.message, stack: error.stack }
        : { message: String(error), stack: undefined };
    message = { index, failure };
  }
  parentPort?.postMessage(message, []);
}
