import { bestAndMedian, inFreshProcess } from "../fresh-process.ts";
import type { TicksRequest } from "./measure.ts";

export interface TicksBenchOptions {
  readonly rounds: number;
  readonly progress: (line: string) => void;
}

interface TicksResult {
  readonly freshNs: number;
  readonly laterNs: number;
}

/** What a tick of Node costs before and after collections, with and without one that is kept. */
export function benchTicks({ rounds, progress }: TicksBenchOptions): Record<string, unknown> {
  const results = { plain: [] as TicksResult[], kept: [] as TicksResult[] };
  for (let round = 0; round < rounds; round++) {
    for (const [name, isKept] of [
      ["plain", false],
      ["kept", true],
    ] as const) {
      const request: TicksRequest = { isKept };
      results[name].push(inFreshProcess("./ticks/measure.ts", request) as TicksResult);
    }
    progress(`round ${round + 1} of ${rounds}`);
  }
  const summary = (all: readonly TicksResult[], key: keyof TicksResult): object => {
    const { best, median } = bestAndMedian(
      all.map((result) => result[key]),
      "lowest",
    );
    return { best: Math.round(best), median: Math.round(median) };
  };
  return {
    bench: "ticks",
    rounds,
    method:
      "CPU nanoseconds of a process.nextTick, a million in a row, before and after ten full collections at moments when no tick " +
      "waited; best of fresh processes, median beside it; kept: with one tick that is kept from the beginning",
    plain: { freshNs: summary(results.plain, "freshNs"), laterNs: summary(results.plain, "laterNs") },
    kept: { freshNs: summary(results.kept, "freshNs"), laterNs: summary(results.kept, "laterNs") },
  };
}
