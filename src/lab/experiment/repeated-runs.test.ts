import { describe, expect, test } from "vitest";
import { requestRecord } from "../../core/request-record.ts";
import { buildCell } from "../results/build-cell.ts";
import type { CellResult } from "../results/types.ts";
import { describeRepeats, repeatedRuns, repetitionRemarks } from "./repeated-runs.ts";

/** A run in which one request took so long; every run has a seed of its own. */
function runOf(arm: string, run: number, ttftMs: number, workers = 2): CellResult {
  const at = ttftMs * 1e6;
  const times = { intendedNs: 0, firstContentNs: at, lastContentNs: at, endNs: at };
  return buildCell({
    arm,
    policy: arm,
    level: { speed: 1, workers },
    run,
    seed: 100 + run,
    records: [requestRecord({ id: "1", ...times, promptTokens: 10, outputTokens: 1, account: "completed" })],
    window: { startNs: 0, endNs: 1e9, drainNs: 0 },
    slo: {},
    snapshots: 0,
    workers: [],
    cacheCeiling: "unavailable",
  });
}

describe("runs that are equal number by number", () => {
  test("are found by arm and level, whatever their seeds", () => {
    const cells = [
      ...[1, 2, 3].map((run) => runOf("rr", run, 10)),
      runOf("kv", 1, 10),
      runOf("kv", 2, 11),
      runOf("kv", 3, 10),
    ];
    expect(repeatedRuns(cells).map(({ first, repeats }) => [first.id, ...repeats.map(({ id }) => id)])).toEqual([
      ["rr/speed-1-workers-2/run-1", "rr/speed-1-workers-2/run-2", "rr/speed-1-workers-2/run-3"],
      ["kv/speed-1-workers-2/run-1", "kv/speed-1-workers-2/run-3"],
    ]);
  });

  test("are named with the arms and levels that have them, unless all do", () => {
    const rr = [2, 4].flatMap((workers) => [1, 2, 3].map((run) => runOf("rr", run, 10, workers)));
    expect(describeRepeats(rr)).toEqual(["runs 2 and 3 repeat run 1 exactly and are counted once"]);
    const kv = [2, 4].flatMap((workers) => [1, 2, 3].map((run) => runOf("kv", run, workers === 2 ? 9 : run, workers)));
    expect(describeRepeats([...rr, ...kv])).toEqual([
      "runs 2 and 3 repeat run 1 exactly and are counted once (rr; kv at 1x on 2)",
    ]);
    const many = Array.from({ length: 12 }, (_, at) => runOf("rr", at + 1, 10));
    expect(describeRepeats(many)).toEqual(["runs 2 to 12 repeat run 1 exactly and are counted once"]);
  });

  test("are one remark after a run, and runs that differ are none", () => {
    expect(repetitionRemarks([runOf("rr", 1, 10), runOf("rr", 2, 10)])).toEqual([
      "repetitions did not differ, since nothing in them is random: run 2 repeats run 1 exactly and is counted once",
    ]);
    expect(repetitionRemarks([runOf("rr", 1, 10), runOf("rr", 2, 11)])).toEqual([]);
  });
});
