import { parentPort } from "node:worker_threads";

/** What a thread says of a job. */
export type ThreadAnswer<Answer> =
  | { readonly finished: Answer }
  | { readonly failure: { readonly message: string; readonly stack: string | undefined } };

/** Makes this thread one of a pool's: it is told a number, and answers with what came of that job. */
export function serveJobs(run: (index: number) => unknown): void {
  parentPort?.on("message", (index: number) => void answer(() => run(index)));
}

async function answer(run: () => unknown): Promise<void> {
  let message: ThreadAnswer<unknown>;
  try {
    message = { finished: await run() };
  } catch (error) {
    const failure =
      error instanceof Error
        ? { message: error.message, stack: error.stack }
        : { message: String(error), stack: undefined };
    message = { failure };
  }
  parentPort?.postMessage(message, []);
}
