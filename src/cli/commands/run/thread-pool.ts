import { Worker } from "node:worker_threads";
import { compileLean } from "./lean-compiler.ts";
import type { ThreadAnswer } from "./serve-jobs.ts";
import { endOfThread, failureOf } from "./thread-failure.ts";

/** Sources that are run as they are, without a build, have no file that a thread could load. */
const CAN_START_THREADS = import.meta.url.endsWith(".js");

/** Jobs that are numbered from 0, the same here and in any thread. */
export interface PoolWork<Setting, Answer> {
  /** The built file of a thread, which calls `serveJobs`. */
  readonly thread: URL;
  /** What a thread needs once, before any job. */
  readonly setting: Setting;
  readonly jobs: number;
  run(setting: Setting, index: number): Promise<Answer> | Answer;
}

/** How a pool is told to stop, and tells what it has done. */
export interface PoolWatch<Answer> {
  readonly signal: AbortSignal;
  finished(answer: Answer): Promise<void> | void;
}

/** Runs all jobs, each thread one at a time; resolves when all are done or it was told to stop. */
export async function runJobs<Setting, Answer>(
  work: PoolWork<Setting, Answer>,
  threads: number,
  watch: PoolWatch<Answer>,
): Promise<void> {
  compileLean();
  const count = Math.min(threads, work.jobs);
  if (count <= 1 || !CAN_START_THREADS) return runHere(work, watch);
  let next = 0;
  const takeNext = (): number | undefined => (watch.signal.aborted || next >= work.jobs ? undefined : next++);
  const failure = new AbortController();
  const lanes = Array.from({ length: count }, () => runLane(work, takeNext, watch, failure));
  // All of them: whoever keeps what is finished must not be told that it is over while others still bring something.
  const ends = await Promise.allSettled(lanes);
  const failed = ends.find((end) => end.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

async function runHere<Setting, Answer>(work: PoolWork<Setting, Answer>, watch: PoolWatch<Answer>): Promise<void> {
  for (let index = 0; index < work.jobs && !watch.signal.aborted; index++) {
    await watch.finished(await work.run(work.setting, index));
    // Lets an interrupt in, which a simulation that never waits would keep out.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** One thread, from its first job to its last; ends at once when told to stop or when any thread has failed. */
async function runLane<Setting, Answer>(
  work: PoolWork<Setting, Answer>,
  takeNext: () => number | undefined,
  watch: PoolWatch<Answer>,
  failure: AbortController,
): Promise<void> {
  const thread = new Worker(work.thread, { workerData: work.setting });
  const stop = AbortSignal.any([watch.signal, failure.signal]);
  const halt = (): void => void thread.terminate();
  stop.addEventListener("abort", halt);
  const ended = endOf(thread, stop);
  try {
    for (let index = takeNext(); index !== undefined && !stop.aborted; index = takeNext()) {
      thread.postMessage(index, []);
      const answer = await Promise.race([nextAnswer(thread), ended]);
      if (answer === undefined) break;
      if ("failure" in answer) throw failureOf(answer.failure);
      // What a thread says is what the same job says here.
      await watch.finished(answer.finished as Answer);
    }
  } catch (error) {
    failure.abort();
    throw error;
  } finally {
    stop.removeEventListener("abort", halt);
    ended.catch(() => {});
    await thread.terminate();
  }
}

function nextAnswer(thread: Worker): Promise<ThreadAnswer<unknown>> {
  return new Promise((resolve) => thread.once("message", resolve));
}

/** Resolves when a thread was told to stop; rejects when it ends by itself, which loses the job it was at. */
function endOf(thread: Worker, stop: AbortSignal): Promise<undefined> {
  return new Promise((resolve, reject) => {
    thread.on("error", (error) => reject(endOfThread(error)));
    thread.on("exit", (code) => {
      if (stop.aborted) resolve(undefined);
      else reject(endOfThread(new Error(`exit code ${code}`)));
    });
  });
}
