import { describe, expect, test } from "vitest";
import { cellOf, latencyOf, levelOf } from "./cells.test-support.ts";
import type { LevelComparison } from "./comparisons.ts";
import { crossoversIn, rowsOf } from "./crossover.ts";

/** A level at which the arm's TTFT is so many milliseconds where the baseline's is 100. */
function at(concurrency: number, p50: number, workers = 2): LevelComparison {
  const cell = (arm: string, value: number): ReturnType<typeof cellOf> =>
    cellOf(arm, { level: { concurrency, workers }, latencies: { ttftMs: latencyOf({ p50: value }) } });
  return levelOf(cell("rr", 100), cell("kv", p50));
}

describe("where arms change sides", () => {
  test("levels stand in rows of rising load, and of more workers under one load", () => {
    const rows = rowsOf([at(80, 90), at(40, 90), at(40, 90, 4)]);
    expect(
      rows.map(({ axis, levels }) => [axis, levels.map(({ level }) => [level.concurrency, level.workers])]),
    ).toEqual([
      [
        "load",
        [
          [40, 2],
          [80, 2],
        ],
      ],
      [
        "workers",
        [
          [40, 2],
          [40, 4],
        ],
      ],
    ]);
  });

  test("a gain turns into a loss between two levels", () => {
    const [row] = rowsOf([at(40, 80), at(80, 95), at(120, 130)]);
    expect(crossoversIn(row)).toMatchObject([
      {
        metric: "ttftP50Ms",
        axis: "load",
        from: { concurrency: 80 },
        to: { concurrency: 120 },
        turns: "gain into loss",
      },
    ]);
  });

  test("levels that are equal, or of which nothing is known, are passed over", () => {
    const [row] = rowsOf([at(40, 130), at(80, 100), at(100, Number.NaN), at(120, 80)]);
    expect(crossoversIn(row)).toMatchObject([
      { from: { concurrency: 40 }, to: { concurrency: 120 }, turns: "loss into gain" },
    ]);
  });

  test("an arm that no longer gets there has lost", () => {
    const [row] = rowsOf([at(40, 80), at(80, Infinity)]);
    expect(crossoversIn(row)).toMatchObject([{ turns: "gain into loss" }]);
    const [even] = rowsOf([at(40, 80), at(80, 70)]);
    expect(crossoversIn(even)).toEqual([]);
  });
});
