import { bestAndMedian, inFreshProcess } from "../fresh-process.ts";
import type { WorkerResult } from "./measure.ts";

export interface WorkerBenchOptions {
  readonly rounds: number;
  readonly progress: (line: string) => void;
}

/** What a simulated worker costs that streams to 60 clients in real time, each round in fresh processes. */
export function benchWorker({ rounds, progress }: WorkerBenchOptions): Record<string, unknown> {
  const results: WorkerResult[] = [];
  for (let round = 0; round < rounds; round++) {
    const result = inFreshProcess("./worker/measure.ts", {}) as WorkerResult;
    results.push(result);
    progress(`round ${round + 1} of ${rounds}: ${result.cpuMsPerThousandTokens.toFixed(1)} CPU ms per 1,000 tokens`);
  }
  const summary: Record<string, number> = {};
  for (const key of Object.keys(results[0]) as (keyof WorkerResult)[]) {
    const values = results.map((result) => result[key]);
    const { best, median } = bestAndMedian(values, key === "tokensPerSecond" ? "highest" : "lowest");
    summary[key] = Number(best.toPrecision(4));
    summary[`${key}Median`] = Number(median.toPrecision(4));
  }
  return {
    bench: "worker",
    rounds,
    method:
      "one worker (TensorRT-LLM, Llama 3.1 70B FP8, one H200, batch of 64) and 60 streams of 3,500-token prompts in real time; " +
      "CPU time of the worker's process over 8 s after 6 s of warm-up, user and system; best of fresh processes, median beside it",
    ...summary,
  };
}
