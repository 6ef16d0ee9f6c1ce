import { describe, expect, test } from "vitest";
import { requestRecord } from "../../core/request-record.ts";
import { buildCell } from "../results/build-cell.ts";
import type { CellResult } from "../results/types.ts";
import { comparePublished, summariseErrors } from "./compare-published.ts";
import { type PublishedStudy, readPublished } from "./published.ts";

/** A cell of one hundred requests with this TTFT, of which so many are shed. */
function cellOf(arm: string, concurrency: number, ttftMs: number, shed = 0): CellResult {
  const records = Array.from({ length: 100 }, (_, at) => {
    const intendedNs = at * 1e8;
    const base = { id: String(at), intendedNs, promptTokens: 100, worker: "w" };
    if (at < shed) return requestRecord({ ...base, account: "shed", endNs: intendedNs });
    const firstContentNs = intendedNs + ttftMs * 1e6;
    const endNs = firstContentNs + 1e6;
    return requestRecord({
      ...base,
      account: "completed",
      firstContentNs,
      lastContentNs: endNs,
      endNs,
      outputTokens: 2,
    });
  });
  return buildCell({
    arm,
    policy: "round-robin",
    level: { concurrency, workers: 1 },
    run: 1,
    seed: 1,
    records,
    window: { startNs: 0, endNs: 10e9, drainNs: 10e9 },
    slo: {},
    snapshots: 0,
    workers: [],
    cacheCeiling: "unavailable",
  });
}

function studyOf(changes: Partial<PublishedStudy> = {}): PublishedStudy {
  const level = { concurrency: 10, workers: 1 };
  const { study, problems } = readPublished({
    study: "a study",
    source: "a page",
    cells: [
      { arm: "rr", level, values: { ttftP50Ms: 200, requestsPerSecond: 10 } },
      { arm: "kv", level, values: { ttftP50Ms: 100 } },
    ],
    contrasts: [{ metric: "ttftP50Ms", arm: "kv", against: "rr", as: "ratio" }],
    ...changes,
  });
  if (study === undefined) throw new Error(problems.join("\n"));
  return study;
}

describe("a published table beside a run", () => {
  test("gives a signed error for every number", () => {
    const { values, missing } = comparePublished(studyOf(), [cellOf("rr", 10, 250), cellOf("kv", 10, 90)]);
    const errors = values.map(({ arm, metric, error }) => [arm, metric.name, Math.round(error ?? NaN)]);
    expect(errors).toEqual([
      ["rr", "ttftP50Ms", 25],
      ["rr", "requestsPerSecond", -2],
      ["kv", "ttftP50Ms", -10],
    ]);
    expect(missing).toEqual([]);
  });

  test("says which way two arms differ, and whether the study has it the same way", () => {
    const agree = comparePublished(studyOf(), [cellOf("rr", 10, 250), cellOf("kv", 10, 100)]);
    expect(agree.contrasts).toMatchObject([{ published: 0.5, sameSign: true }]);
    const disagree = comparePublished(studyOf(), [cellOf("rr", 10, 100), cellOf("kv", 10, 110)]);
    expect(disagree.contrasts).toMatchObject([{ sameSign: false }]);
  });

  test("compares a saturated cell on served rate alone", () => {
    const { values } = comparePublished(studyOf(), [cellOf("rr", 10, 250, 20), cellOf("kv", 10, 90)]);
    const [ttft, rate] = values;
    expect([ttft.saturated, ttft.error]).toEqual([true, undefined]);
    expect(rate.error).toBeLessThan(-15);
  });

  test("names what was fitted and leaves it out of the summary", () => {
    const fitted = [{ what: "a knob", arms: ["rr"], metrics: ["ttftP50Ms"] }];
    const comparison = comparePublished(studyOf({ fitted }), [cellOf("rr", 10, 250), cellOf("kv", 10, 90)]);
    expect(comparison.values.map((value) => value.fitted)).toEqual(["a knob", undefined, undefined]);
    expect(summariseErrors(comparison).map(({ arm, metric }) => `${arm} ${metric.name}`)).toEqual([
      "rr requestsPerSecond",
      "kv ttftP50Ms",
    ]);
  });

  test("lists published cells that were not run", () => {
    expect(comparePublished(studyOf(), [cellOf("rr", 10, 250)]).missing).toEqual(["kv at 10 conv on 1"]);
  });

  test("is refused where it names a metric that is not known", () => {
    const cells = [{ arm: "rr", level: { workers: 1 }, values: { ttft: 1 } }];
    const { study, problems } = readPublished({ study: "a", source: "b", cells });
    expect(study).toBeUndefined();
    expect(problems[0]).toContain("cells[0].values");
  });
});
