import { bestAndMedian, inFreshProcess } from "../fresh-process.ts";
import type { TwinMeasureRequest, TwinMeasureResult } from "./measure.ts";

export interface TwinBenchOptions {
  /** A Mooncake-format trace, repeated with renamed ids until there are enough requests; null for a synthetic one. */
  readonly trace: string | null;
  readonly rounds: number;
  /** 1 M requests over 128 workers instead of 23,608 over 8. */
  readonly large: boolean;
  readonly progress: (line: string) => void;
}

/** Requests of the hour that the toolagent trace covers. */
const HOUR_REQUESTS = 23_608;
const LARGE_REQUESTS = 1_000_000;

/** CPU time of one simulated run, each round in a fresh process, the best with the median beside it. */
export function benchTwin(options: TwinBenchOptions): Record<string, unknown> {
  const common = { trace: options.trace, policy: "kv-cost" };
  const request: TwinMeasureRequest = options.large
    ? // The trace's own blocks: 16 times the workers and 42 times the requests are what this one is about.
      {
        ...common,
        requests: LARGE_REQUESTS,
        workers: 128,
        speed: 12,
        blockTokens: 512,
        tokenTimes: false,
        twice: false,
      }
    : { ...common, requests: HOUR_REQUESTS, workers: 8, speed: 0.8, blockTokens: 64, tokenTimes: true, twice: true };
  const results: TwinMeasureResult[] = [];
  for (let round = 0; round < options.rounds; round++) {
    results.push(inFreshProcess("./twin/measure.ts", request) as TwinMeasureResult);
    const { cpuSeconds, warmCpuSeconds } = results[round];
    const warm = warmCpuSeconds === null ? "" : `, warm ${warmCpuSeconds.toFixed(2)}`;
    const cost = `${cpuSeconds.toFixed(2)} CPU-s${warm}`;
    options.progress(`round ${round + 1} of ${options.rounds}: ${cost}`);
  }
  const cpu = bestAndMedian(
    results.map(({ cpuSeconds }) => cpuSeconds),
    "lowest",
  );
  const warm = results.flatMap(({ warmCpuSeconds }) => warmCpuSeconds ?? []);
  const warmCpu = warm.length === 0 ? undefined : bestAndMedian(warm, "lowest");
  const best = results.find(({ cpuSeconds }) => cpuSeconds === cpu.best) ?? results[0];
  return {
    bench: "twin",
    trace: options.trace ?? "synthetic, seed 1",
    rounds: options.rounds,
    method:
      "one simulated run per fresh process, CPU time of all its threads, best with the median beside it; inside the clock: " +
      "hashing prompts, routing with summaries, engines, KV events, request records, compilation and collection; outside: reading the trace; " +
      "warm: the same run once more in the same process",
    requests: request.requests,
    workers: request.workers,
    blockTokens: request.blockTokens,
    policy: request.policy,
    ...best,
    cpuSecondsMedian: cpu.median,
    warmCpuSeconds: warmCpu?.best ?? null,
    warmCpuSecondsMedian: warmCpu?.median ?? null,
  };
}
