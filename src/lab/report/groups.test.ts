import { describe, expect, test } from "vitest";
import type { DurationHistogram } from "../../measure/duration-histogram.ts";
import { accountingOf, type CellChanges, cellOf, groupOf, latencyOf } from "./cells.test-support.ts";
import { collectEvidence, IdNumbers } from "./evidence.ts";
import { emptyGaps, poolCells } from "./groups.ts";

const REFUSAL = { account: "shed", status: 429, code: "queue-full", message: "queue of 10 is full", count: 3 } as const;
const tokens = (promptMean: number): NonNullable<CellChanges["tokens"]> => ({ ...cellOf("x").tokens, promptMean });

describe("runs of an arm at a level as one", () => {
  test("cells are pooled by arm and level", () => {
    const cells = [
      cellOf("rr"),
      cellOf("kv"),
      cellOf("rr", { run: 2 }),
      cellOf("rr", { level: { concurrency: 9, workers: 2 } }),
    ];
    const groups = poolCells(
      cells,
      () => undefined,
      () => undefined,
    );
    expect(groups.map(({ arm, level, cells: own }) => [arm, level.concurrency, own.length])).toEqual([
      ["rr", 8, 2],
      ["kv", 8, 1],
      ["rr", 9, 1],
    ]);
  });

  test("accounts add up, and refusals that say the same are one", () => {
    const { accounting, refusals } = groupOf(
      cellOf("rr", { accounting: accountingOf(90, 100), refusals: [REFUSAL] }),
      cellOf("rr", {
        run: 2,
        accounting: accountingOf(200, 200),
        refusals: [
          { ...REFUSAL, message: "queue of 12 is full", count: 4 },
          { ...REFUSAL, status: 503, count: 9 },
        ],
      }),
    );
    expect(accounting).toMatchObject({ offered: 300, completed: 290, failed: 10 });
    expect(refusals.map(({ status, count }) => [status, count])).toEqual([
      [503, 9],
      [429, 7],
    ]);
  });

  test("means weigh requests, and one run that does not know makes the mean unknown", () => {
    const large = cellOf("rr", { accounting: accountingOf(300, 300), tokens: tokens(1000) });
    const small = cellOf("rr", { run: 2, accounting: accountingOf(100, 100), tokens: tokens(2000) });
    expect(groupOf(large, small).tokens.promptMean).toBe(1250);
    expect(groupOf(large, cellOf("rr", { run: 2 })).tokens.promptMean).toBeUndefined();
    expect(groupOf(large, cellOf("rr", { run: 2, accounting: accountingOf(0, 0) })).tokens.promptMean).toBe(1000);
  });

  test("runs that could not keep up are counted only if all of them tell", () => {
    expect(groupOf(cellOf("rr", { saturated: true }), cellOf("rr", { run: 2, saturated: false })).saturatedRuns).toBe(
      1,
    );
    expect(groupOf(cellOf("rr", { saturated: true }), cellOf("rr", { run: 2 })).saturatedRuns).toBeUndefined();
  });

  test("a mean over runs is none where a run did not get there", () => {
    const cell = (run: number, p50: number): ReturnType<typeof cellOf> =>
      cellOf("rr", { run, latencies: { ttftMs: latencyOf({ p50 }) } });
    expect(groupOf(cell(1, 10), cell(2, 30)).runMeans.ttftMs.p50).toEqual({ state: "ok", value: 20 });
    expect(groupOf(cell(1, 10), cell(2, Infinity)).runMeans.ttftMs.p50).toEqual({ state: "not-reached" });
  });

  test("gaps of broken streams count among those of offered requests", () => {
    const gaps = emptyGaps();
    const add = (histogram: DurationHistogram, ms: number, times: number): void => {
      for (let i = 0; i < times; i++) histogram.add(ms * 1e6);
    };
    add(gaps.completed, 10, 99);
    add(gaps.broken, 500, 1);
    const nothing = collectEvidence([], { startNs: 0, endNs: 1, drainNs: 0 }, {}, new IdNumbers());
    const cells = [1, 2].map((run) => cellOf("rr", { run, accounting: accountingOf(10, 10) }));
    const [{ latencies }] = poolCells(
      cells,
      () => nothing,
      () => gaps,
    );
    expect(latencies.itlMs.completed).toMatchObject({ n: 99, mean: { state: "ok", value: 10 } });
    expect(latencies.itlMs.offered.n).toBe(100);
  });
});
