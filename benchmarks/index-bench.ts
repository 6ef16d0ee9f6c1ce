import type { MeasureRequest, MeasureResult } from "./index/measure.ts";
import { bestAndMedian, inFreshProcess } from "./fresh-process.ts";

export interface IndexBenchOptions {
  readonly trace: string | null;
  readonly rounds: number;
  readonly progress: (line: string) => void;
}

const FLEETS = [
  { workers: 8, cacheBlocks: 16_384 },
  { workers: 64, cacheBlocks: 4_410 },
  { workers: 256, cacheBlocks: 4_410 },
];

interface IndexFigures {
  readonly writesPerCpuSecond: number;
  readonly writesPerCpuSecondMedian: number;
  readonly matchP50Us: number;
  readonly matchP99Us: number;
  readonly matchP99UsMedian: number;
  readonly bytesPerBlock: number;
  readonly bytesPerBlockFull: number;
  readonly distinctBlocks: number;
}

/** Writes, matches and memory of the KV index and of the naive one, in fresh processes. */
export function benchIndex(options: IndexBenchOptions): Record<string, unknown> {
  const byWorkers = FLEETS.map((fleet) => {
    const paged = (what: MeasureRequest["what"]): MeasureResult => measure(what, "paged", fleet, 12_031, options.trace);
    // The naive index is a baseline, hundreds of times slower at its worst: one round on a part of the trace will do.
    const naive = (what: MeasureRequest["what"]): MeasureResult =>
      measure(what, "naive", fleet, Math.min(12_031, 400_000 / fleet.workers), options.trace);
    const speeds: MeasureResult[] = [];
    for (let round = 0; round < options.rounds; round++) {
      speeds.push(paged("speed"));
      options.progress(`${fleet.workers} workers, round ${round + 1} of ${options.rounds}`);
    }
    const own = figures(speeds, paged("bytes"), paged("bytes-full"));
    const { cappedWritesPerCpuSecond, cappedApplyP999Us } = paged("capped");
    const baseline = figures([naive("speed")], naive("bytes"), naive("bytes-full"));
    options.progress(`${fleet.workers} workers, memory, cap and naive index`);
    return {
      workers: fleet.workers,
      ...own,
      cappedWritesPerCpuSecond: Math.round(cappedWritesPerCpuSecond ?? 0),
      cappedApplyP999Us: rounded(cappedApplyP999Us ?? 0),
      naive: baseline,
    };
  });
  return {
    bench: "index",
    trace: options.trace ?? "synthetic, seed 1",
    rounds: options.rounds,
    method:
      "speed from fresh processes, best with the median beside it; writes: CPU time of applying all events once in order after " +
      "one pass to warm up, a write is one stored or removed block; match: wall time of each match between the writes; " +
      "bytes: heap and array buffers after a collection over distinct blocks, with room for just the peak; capped: with engines' " +
      "own hashes and room for half of what the caches hold; naive: one round, on the first 400,000 / workers requests",
    byWorkers,
  };
}

function measure(
  what: MeasureRequest["what"],
  index: "paged" | "naive",
  fleet: { workers: number; cacheBlocks: number },
  requests: number,
  trace: string | null,
): MeasureResult {
  const request: MeasureRequest = { what, index, ...fleet, trace, requests };
  return inFreshProcess("./index/measure.ts", request) as MeasureResult;
}

function figures(speeds: readonly MeasureResult[], bytes: MeasureResult, full: MeasureResult): IndexFigures {
  const of = (key: "writesPerCpuSecond" | "matchP50Us" | "matchP99Us"): { best: number; median: number } =>
    bestAndMedian(
      speeds.map((speed) => speed[key] ?? 0),
      key === "writesPerCpuSecond" ? "highest" : "lowest",
    );
  return {
    writesPerCpuSecond: Math.round(of("writesPerCpuSecond").best),
    writesPerCpuSecondMedian: Math.round(of("writesPerCpuSecond").median),
    matchP50Us: rounded(of("matchP50Us").best),
    matchP99Us: rounded(of("matchP99Us").best),
    matchP99UsMedian: rounded(of("matchP99Us").median),
    bytesPerBlock: rounded(bytes.bytesPerBlock ?? 0),
    bytesPerBlockFull: rounded(full.bytesPerBlock ?? 0),
    distinctBlocks: bytes.distinctBlocks ?? 0,
  };
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
