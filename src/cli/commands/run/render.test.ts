import pc from "picocolors";
import { describe, expect, test } from "vitest";
import { requestRecord, type RequestRecord } from "../../../core/request-record.ts";
import { armSchema } from "../../../lab/experiment/fleet-schema.ts";
import { buildCell } from "../../../lab/results/build-cell.ts";
import type { CellResult } from "../../../lab/results/types.ts";
import { remarks, resultsTable } from "./render.ts";

/** What becomes of a request that does not complete. */
type Fate = Partial<Pick<RequestRecord, "account" | "failure" | "shedReason">>;

const ARMS = [
  armSchema.parse({ name: "rr", policy: "round-robin", admission: { mode: "shed", watermarks: { prefillTokens: 7 } } }),
];
const TIMED_OUT: Fate = { account: "timedOut" };
const FULL: Fate = { account: "rejected", failure: { status: 503, message: "full" } };
const ODD: Fate = { account: "rejected", failure: { status: 500, message: "odd" } };
const SHED: Fate = {
  account: "shed",
  shedReason: { code: "overloaded", knob: "prefillTokens", value: 9, threshold: 7, retryAfterMs: 1, message: "9 of 7" },
};

/** A run of an arm in which these requests do not complete, and one does; each run takes its own time. */
function runOf(run: number, ...fates: readonly Fate[]): CellResult {
  const records = [{}, ...fates].map((fate, at) =>
    requestRecord({
      id: String(at),
      intendedNs: at,
      promptTokens: 9,
      account: "completed",
      endNs: run * 1e6 + at,
      ...fate,
    }),
  );
  return buildCell({
    arm: "rr",
    policy: "round-robin",
    level: { concurrency: 4, workers: 2 },
    run,
    seed: 1,
    records,
    window: { startNs: 0, endNs: 10e9, drainNs: 10e9 },
    slo: {},
    snapshots: 0,
    workers: [],
    cacheCeiling: "unavailable",
  });
}

test("a run that must not be used is named beside the means it is in", () => {
  const [first, second] = [runOf(1), runOf(2)].map((cell) => ({ ...cell, saturated: false }));
  const marked = resultsTable([first, { ...second, voided: ["a worker restarted"] }], pc.createColors(false));
  expect(marked.at(-1)).toMatch(/ 1 of 2 void$/);
  expect(resultsTable([first], pc.createColors(false)).at(-1)).not.toContain("void");
});

test("a trace that ran out before its window is remarked upon", () => {
  const cell = { ...runOf(1), saturated: false, ranOutSeconds: 4 };
  expect(remarks([cell], ARMS)).toContain(
    "rr at 4 conv on 2: the trace had nothing more to send from 4.0 s on, and rates are over a window until 10.0 s",
  );
});

test("rows of a trace that were never sent are remarked upon, over all runs", () => {
  const cells = [1, 2].map((run) => ({ ...runOf(run), saturated: false, unsentRows: 3 * run }));
  expect(remarks(cells, ARMS)).toContain(
    "rr at 4 conv on 2: 9 rows of the trace were never sent: due after the window, or behind a turn that did not complete",
  );
});

/** What is remarked of requests that were turned away. */
function refusals(...runs: readonly CellResult[]): string[] {
  const unsaturated = runs.map((cell) => ({ ...cell, saturated: false }));
  return remarks(unsaturated, ARMS);
}

describe("the remark about requests that were turned away", () => {
  test("counts all runs, as the table does", () => {
    expect(refusals(runOf(1, FULL), runOf(2, FULL, ODD))).toEqual(["rr at 4 conv on 2: 3 rejected, most by full"]);
  });

  test("is there where only a later run has such", () => {
    expect(refusals(runOf(1), runOf(2, FULL))).toEqual(["rr at 4 conv on 2: 1 rejected, most by full"]);
  });

  test("names no reason where requests have none", () => {
    expect(refusals(runOf(1, TIMED_OUT))).toEqual(["rr at 4 conv on 2: 1 timed out"]);
  });

  test("has every account, and the threshold of the arm", () => {
    expect(refusals(runOf(1, SHED, TIMED_OUT), runOf(2, SHED))).toEqual([
      "rr at 4 conv on 2: 2 shed, most by prefillTokens (threshold 7); 1 timed out",
    ]);
  });

  test("is left out where all completed", () => {
    expect(refusals(runOf(1), runOf(2))).toEqual([]);
  });
});
