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
  /** Undefined for the naive index, which has no cap. */
  readonly cappedWritesPerCpuSecond: number | undefined;
  readonly cappedApplyP999Us: number | undefined;
  readonly bytesPerBlock: number;
  readonly bytesPerBlockFull: number;
  readonly distinctBlocks: number;
}

/** Writes, matches and memory of the KV index and of the naive one, each in fresh processes, the two in turn. */
export function benchIndex(options: IndexBenchOptions): Record<string, unknown> {
  const byWorkers = FLEETS.map((fleet) => {
    const figures: Record<"paged" | "naive", IndexFigures[]> = { paged: [], naive: [] };
    for (let round = 0; round < options.rounds; round++) {
      for (const index of ["paged", "naive"] as const) {
        // The naive index is a baseline, hundreds of times slower at its worst: one round on a part of the trace will do.
        if (index === "naive" && round > 0) continue;
        figures[index].push(measureAll(index, fleet, options.trace));
        options.progress(`${fleet.workers} workers, ${index}, round ${round + 1} of ${options.rounds}`);
      }
    }
    return { workers: fleet.workers, ...summary(figures.paged), naive: summary(figures.naive) };
  });
  return {
    bench: "index",
    trace: options.trace ?? "synthetic, seed 1",
    rounds: options.rounds,
    method:
      "each figure from fresh processes, best with the median beside it; writes: CPU time of applying all events once in order " +
      "after one pass to warm up, a write is one stored or removed block; match: wall time of each match between the " +
      "writes; bytes: heap and array buffers after a collection over distinct blocks, with room for just the peak; capped: with " +
      "engines' own hashes and room for half of what the caches hold; naive: one round, on the first 400,000 / workers requests",
    byWorkers,
  };
}

function measureAll(
  index: "paged" | "naive",
  fleet: { workers: number; cacheBlocks: number },
  trace: string | null,
): IndexFigures {
  const requests = index === "paged" ? 12_031 : Math.min(12_031, 400_000 / fleet.workers);
  const measure = (what: MeasureRequest["what"]): MeasureResult =>
    inFreshProcess("./index/measure.ts", {
      what,
      index,
      ...fleet,
      trace,
      requests,
    } satisfies MeasureRequest) as MeasureResult;
  const writes = measure("writes").writesPerCpuSecond ?? 0;
  const { matchP50Us = 0, matchP99Us = 0 } = measure("matches");
  const bytes = measure("bytes");
  const capped = index === "paged" ? measure("capped") : {};
  return {
    writesPerCpuSecond: writes,
    writesPerCpuSecondMedian: writes,
    matchP50Us,
    matchP99Us,
    matchP99UsMedian: matchP99Us,
    cappedWritesPerCpuSecond: capped.cappedWritesPerCpuSecond,
    cappedApplyP999Us: capped.cappedApplyP999Us,
    bytesPerBlock: bytes.bytesPerBlock ?? 0,
    bytesPerBlockFull: measure("bytes-full").bytesPerBlock ?? 0,
    distinctBlocks: bytes.distinctBlocks ?? 0,
  };
}

function summary(rounds: readonly IndexFigures[]): IndexFigures {
  const writes = bestAndMedian(
    rounds.map((round) => round.writesPerCpuSecond),
    "highest",
  );
  const p50 = bestAndMedian(
    rounds.map((round) => round.matchP50Us),
    "lowest",
  );
  const p99 = bestAndMedian(
    rounds.map((round) => round.matchP99Us),
    "lowest",
  );
  return {
    writesPerCpuSecond: Math.round(writes.best),
    writesPerCpuSecondMedian: Math.round(writes.median),
    matchP50Us: rounded(p50.best),
    matchP99Us: rounded(p99.best),
    matchP99UsMedian: rounded(p99.median),
    cappedWritesPerCpuSecond: best(rounds, "cappedWritesPerCpuSecond", "highest"),
    cappedApplyP999Us: best(rounds, "cappedApplyP999Us", "lowest"),
    bytesPerBlock: rounded(rounds[0].bytesPerBlock),
    bytesPerBlockFull: rounded(rounds[0].bytesPerBlockFull),
    distinctBlocks: rounds[0].distinctBlocks,
  };
}

function best(
  rounds: readonly IndexFigures[],
  key: "cappedWritesPerCpuSecond" | "cappedApplyP999Us",
  which: "lowest" | "highest",
): number | undefined {
  const values = rounds.flatMap((round) => round[key] ?? []);
  return values.length === 0 ? undefined : rounded(bestAndMedian(values, which).best);
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
