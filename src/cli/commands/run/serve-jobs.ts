import { parentPort } from "node:worker_threads";
import { describeFailure, type ThreadFailure } from "./thread-failure.ts";

/** What a thread says of a job. */
export type ThreadAnswer<Answer> = { readonly finished: Answer } | { readonly failure: ThreadFailure };

/** Makes this thread one of a pool's: it is told a number, and answers with what came of that job. */
export function serveJobs(run: (index: number) => unknown): void {
  parentPort?.on("message", (index: number) => void answer(() => run(index)));
}

async function answer(run: () => unknown): Promise<void> {
  let message: ThreadAnswer<unknown>;
  try {
    message = { finished: await run() };
  } catch (error) {
    message = { failure: describeFailure(error) };
  }
  parentPort?.postMessage(message, []);
}
