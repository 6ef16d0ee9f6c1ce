import { describe, expect, test } from "vitest";
import { requestRecord } from "../../core/request-record.ts";
import { buildCell } from "../results/build-cell.ts";
import type { CellResult, ResultsFile } from "../results/types.ts";
import { type ArrangedResults, arrangeResults } from "./arrange-results.ts";

/** A run in which one request took so long. */
function run(arm: string, number: number, ttftMs: number, voided?: readonly string[]): CellResult {
  const record = requestRecord({
    id: "1",
    intendedNs: 0,
    firstContentNs: ttftMs * 1e6,
    lastContentNs: ttftMs * 1e6,
    endNs: ttftMs * 1e6,
    promptTokens: 10,
    outputTokens: 1,
    account: "completed",
  });
  const cell = buildCell({
    arm,
    policy: "round-robin",
    level: { concurrency: 4, workers: 2 },
    run: number,
    seed: 1,
    records: [record],
    window: { startNs: 0, endNs: 1e9, drainNs: 0 },
    slo: {},
    snapshots: 0,
    workers: [],
    cacheCeiling: "unavailable",
  });
  return { ...cell, voided };
}

function arranged(
  mode: "pool" | "compare",
  ...files: readonly (readonly [fleet: string, ...cells: CellResult[]])[]
): ArrangedResults {
  return arrangeResults(
    files.map(([fleet, ...cells], source) => {
      const config = { fleet, arms: [{ name: "rr", policy: "round-robin" }] };
      const results: ResultsFile = { schemaVersion: 1, experiment: "x", config, cells };
      return { source, label: `folder-${source + 1}`, results };
    }),
    mode,
  );
}

const placesIn = ({ cells }: ArrangedResults): (readonly [string, number])[] =>
  cells.map(({ arm, run: at }) => [arm, at]);

describe("several results files side by side", () => {
  test("an arm with the same settings in both has more runs", () => {
    expect(placesIn(arranged("pool", ["two", run("rr", 1, 10), run("rr", 2, 11)], ["two", run("rr", 1, 12)]))).toEqual([
      ["rr", 1],
      ["rr", 2],
      ["rr", 3],
    ]);
  });

  test("arms that were run one folder each are paired by their runs, unless on other seeds", () => {
    const kv = run("kv", 1, 12);
    expect(placesIn(arranged("pool", ["two", run("rr", 1, 10)], ["two", kv]))).toEqual([
      ["rr", 1],
      ["kv", 1],
    ]);
    const other = { ...kv, seed: 2 };
    expect(placesIn(arranged("pool", ["two", run("rr", 1, 10)], ["two", other]))).toEqual([
      ["rr", 1],
      ["kv", 2],
    ]);
    // What comes with more runs of an arm is paired with these.
    expect(placesIn(arranged("pool", ["two", run("rr", 1, 10)], ["two", run("rr", 1, 11), kv]))).toEqual([
      ["rr", 1],
      ["rr", 2],
      ["kv", 2],
    ]);
  });

  test("an arm with other settings is told apart by its folder", () => {
    expect(placesIn(arranged("pool", ["two", run("rr", 1, 10)], ["three", run("rr", 1, 12)]))).toEqual([
      ["folder-1/rr", 1],
      ["folder-2/rr", 1],
    ]);
  });

  test("folders that are to be compared are arms, whatever their arms are called", () => {
    expect(placesIn(arranged("compare", ["two", run("rr", 1, 10)], ["two", run("kv", 1, 12)]))).toEqual([
      ["folder-1", 1],
      ["folder-2", 1],
    ]);
  });

  test("the same folder twice counts once, and says so", () => {
    const { cells, problems } = arranged("pool", ["two", run("rr", 1, 10)], ["two", run("rr", 1, 10)]);
    expect(cells).toHaveLength(1);
    expect(problems).toEqual(["folder-2: 1 cells are those of another folder, number by number; they count once"]);
  });

  test.each(["pool", "compare"] as const)("a run that repeats another counts once, and says so (%s)", (mode) => {
    const same = [1, 2, 3].map((number) => ({ ...run("rr", number, 10), seed: number }));
    const { cells, problems } = arranged(mode, ["two", ...same], ["two", run("rr", 1, 12), run("rr", 2, 13)]);
    const counted = cells.filter(({ source }) => source === 0);
    expect(counted.map(({ run: number, repeats }) => [number, repeats])).toEqual([[1, [2, 3]]]);
    expect(problems).toEqual(["folder-1: runs 2 and 3 repeat run 1 exactly and are counted once"]);
    expect(cells.filter(({ source }) => source === 1).map(({ run: number }) => number)).toEqual(
      mode === "pool" ? [4, 5] : [1, 2],
    );
  });

  test("a void run is left out, with the reason", () => {
    const { cells, problems } = arranged("pool", ["two", run("rr", 1, 10, ["a worker restarted"])]);
    expect(cells).toEqual([]);
    expect(problems[0]).toContain("is void and not used: a worker restarted");
  });
});
