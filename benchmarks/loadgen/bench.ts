import { bestAndMedian, inFreshProcess } from "../fresh-process.ts";
import type { LoadgenMeasureRequest, LoadgenResult } from "./measure.ts";

export interface LoadgenBenchOptions {
  readonly rounds: number;
  readonly progress: (line: string) => void;
}

const REQUEST: LoadgenMeasureRequest = { streams: 500, chunks: 100, warmUpSeconds: 8, measuredSeconds: 8 };
const HIGHER_IS_BETTER: readonly (keyof LoadgenResult)[] = ["chunksPerSecond", "chunksPerCpuSecond", "requests"];

/** The load generator with 500 streams and 10,000 chunks per second, each round in fresh processes. */
export function benchLoadgen({ rounds, progress }: LoadgenBenchOptions): Record<string, unknown> {
  const results: LoadgenResult[] = [];
  for (let round = 0; round < rounds; round++) {
    const result = inFreshProcess("./loadgen/measure.ts", REQUEST) as LoadgenResult;
    results.push(result);
    const { chunkLagP99Ms, chunksPerSecond, chunksPerCpuSecond, idleThreadDelayP99Ms } = result;
    progress(
      `round ${round + 1} of ${rounds}: chunk lag p99 ${chunkLagP99Ms.toFixed(2)} ms at ${chunksPerSecond.toFixed(0)} chunks/s, ` +
        `${chunksPerCpuSecond.toFixed(0)} chunks per CPU second (an idle thread ${idleThreadDelayP99Ms.toFixed(2)} ms late)`,
    );
  }
  const summary: Record<string, number> = {};
  for (const key of Object.keys(results[0]) as (keyof LoadgenResult)[]) {
    const values = results.map((result) => result[key]);
    const { best, median } = bestAndMedian(values, HIGHER_IS_BETTER.includes(key) ? "highest" : "lowest");
    summary[key] = Number(best.toPrecision(4));
    summary[`${key}Median`] = Number(median.toPrecision(4));
  }
  return {
    bench: "loadgen",
    rounds,
    streams: REQUEST.streams,
    method:
      "500 streams in a closed loop against a server in another process that answers at once and sends each stream a chunk every 50 ms, " +
      "10,000 a second, in ten groups of 50 that get theirs together; streams of 100 chunks, text gathered, records and rolling metrics " +
      "kept; chunk lag is the client's time stamp less the server's before its write, over 8 s after 8 s of warm-up; schedule lag is " +
      "from due to on the wire; CPU is user and system time of the client's process, all threads; what an idle thread of it was late by says what the machine added; best of fresh processes, median beside it",
    ...summary,
  };
}
