import { describe, expect, test } from "vitest";
import { accountingOf, cellOf, groupOf, latencyOf, levelOf } from "./cells.test-support.ts";
import type { Obstacle } from "./comparability.ts";
import type { Difference } from "./differences.ts";
import { judgedMetrics } from "./judged-metrics.ts";
import { judge, overallVerdict, type Verdict, verdictAt, type VerdictKind } from "./verdict.ts";

const METRICS = judgedMetrics({}, true);

function difference(name: string, change: number | undefined, noise: Difference["noise"] = "parts"): Difference {
  const metric = METRICS.find((one) => one.name === name);
  if (metric === undefined) throw new Error(`no metric ${name}`);
  const reading = { state: "ok", value: 1 } as const;
  return { metric, baseline: reading, arm: reading, change, interval: undefined, chance: 0.001, noise };
}

describe("whether a difference is shown", () => {
  test.each([
    ["TTFT that falls", "ttftP50Ms", -0.05, "better"],
    ["TTFT that rises", "ttftP50Ms", 0.05, "worse"],
    ["a rate that rises", "outputTokensPerSecond", 0.05, "better"],
    ["less than 2 %", "ttftP50Ms", -0.019, "no-difference-shown"],
    ["half a percentage point of a share", "completedShare", -0.006, "worse"],
    ["less of a share", "completedShare", -0.004, "no-difference-shown"],
    ["nothing known", "ttftP50Ms", undefined, "no-difference-shown"],
  ])("%s", (_, name, change, outcome) => {
    expect(judge(difference(name, change), true).outcome).toBe(outcome);
  });

  test("not if it may be an accident, and from single runs only what is large", () => {
    expect(judge(difference("ttftP50Ms", -0.5), false).outcome).toBe("no-difference-shown");
    expect(judge(difference("ttftP50Ms", -0.09, "ranges"), true).outcome).toBe("no-difference-shown");
    expect(judge(difference("ttftP50Ms", -0.11, "ranges"), true).outcome).toBe("better");
  });
});

describe("the verdict at a level", () => {
  const verdictOf = (changes: readonly [name: string, change: number][], found: readonly Obstacle[] = []): Verdict => {
    const groups = ["rr", "kv"].map((arm) => groupOf(cellOf(arm, { latencies: { ttftMs: latencyOf({ p50: 100 }) } })));
    const judged = changes.map(([name, change]) => judge(difference(name, change), true));
    return verdictAt(groups[0], groups[1], judged, found);
  };

  test("regressions stand before gains", () => {
    const { kind, reasons } = verdictOf([
      ["ttftP50Ms", -0.2],
      ["e2eP95Ms", 0.1],
    ]);
    expect(kind).toBe("mixed");
    expect(reasons).toEqual(["E2E p95 worse: +10.0 %", "TTFT p50 better: −20.0 %"]);
  });

  test("better, worse, and nothing shown", () => {
    expect(verdictOf([["ttftP50Ms", -0.2]]).kind).toBe("better");
    expect(verdictOf([["ttftP50Ms", 0.2]]).kind).toBe("worse");
    expect(verdictOf([["ttftP50Ms", 0.001]]).kind).toBe("no-difference-shown");
  });

  test("an obstacle forbids a verdict", () => {
    const why = "both arms are past saturation";
    expect(verdictOf([["ttftP50Ms", -0.2]], [{ code: "saturation", why }])).toEqual({
      kind: "not-comparable",
      reasons: [why],
      isPastSaturation: true,
    });
  });

  test("fewer completed and quicker with the rest is a trade, also past saturation", () => {
    const cell = (arm: string, p50: number, completed: number): ReturnType<typeof cellOf> =>
      cellOf(arm, {
        accounting: accountingOf(completed),
        latencies: { ttftMs: latencyOf({ p50 }, { p50 }) },
        refusals: [{ account: "rejected", status: 503, code: null, message: "full", count: 1000 - completed }],
      });
    const { verdict, differences, baseline, arm } = levelOf(cell("rr", 4000, 1000), cell("kv", 1000, 860));
    expect(verdict.kind).toBe("traded");
    expect(verdict.reasons[0]).toContain('kv did not complete 140 of 1,000 requests (14.0 %), all HTTP 503 "full"');
    expect(verdict.reasons[0]).toContain("TTFT p50 of 1.0 s against 4.0 s (4.0 × lower)");
    expect(verdictAt(baseline, arm, differences, [{ code: "saturation", why: "both" }]).kind).toBe("traded");
    expect(verdictAt(baseline, arm, differences, [{ code: "different-load", why: "other" }]).kind).toBe(
      "not-comparable",
    );
  });
});

describe("the verdict over all levels", () => {
  test.each<[VerdictKind[], VerdictKind]>([
    [["better", "better"], "better"],
    [["better", "no-difference-shown"], "better"],
    [["better", "worse"], "mixed"],
    [["better", "traded"], "traded"],
    [["no-difference-shown", "not-comparable"], "not-comparable"],
    [["better", "not-comparable"], "not-comparable"],
    [["worse", "not-comparable"], "worse"],
    [["not-comparable"], "not-comparable"],
  ])("%j is %s", (kinds, overall) => {
    expect(overallVerdict(kinds.map((kind) => ({ kind, reasons: [] })))).toBe(overall);
  });

  test("rests on the levels below saturation", () => {
    const saturated: Verdict = { kind: "not-comparable", reasons: [], isPastSaturation: true };
    expect(overallVerdict([{ kind: "better", reasons: [] }, saturated])).toBe("better");
    expect(overallVerdict([saturated])).toBe("not-comparable");
  });
});
