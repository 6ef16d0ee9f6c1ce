import { describe, expect, test } from "vitest";
import { type CellChanges, cellOf, groupOf, latencyOf, levelOf } from "./cells.test-support.ts";
import type { LevelComparison } from "./comparisons.ts";
import { decide, type Decision, workloadFactors } from "./decision-rule.ts";

const BASELINE = { p50: 100, p95: 300 };

function decisionOf(
  ttft: { p50: number; p95: number },
  more: Partial<LevelComparison> = {},
  baseline: typeof ttft = BASELINE,
): Decision {
  const cell = (arm: string, numbers: typeof ttft): ReturnType<typeof cellOf> =>
    cellOf(arm, { latencies: { ttftMs: latencyOf(numbers), e2eMs: latencyOf({ p50: 1000 }) } });
  const level = { ...levelOf(cell("rr", baseline), cell("kv", ttft)), ...more };
  const comparison = {
    arm: "kv",
    baseline: "rr",
    variables: [],
    isSameArm: false,
    missing: [],
    verdict: "better",
  } as const;
  return decide({ ...comparison, levels: [level] })[0];
}

describe("the A/B guide's rule", () => {
  test.each([
    ["both percentiles a quarter better", { p50: 75, p95: 225 }, "beneficial"],
    ["one of them only by 15 %", { p50: 60, p95: 255 }, "between the two"],
    ["one of them only by 5 %", { p50: 60, p95: 285 }, "plain routing is better"],
    ["a median that is worse", { p50: 110, p95: 200 }, "plain routing is better"],
  ])("%s", (_, ttft, conclusion) => {
    expect(decisionOf(ttft).conclusion).toBe(conclusion);
  });

  test("the improvement is the smaller of the two", () => {
    expect(decisionOf({ p50: 60, p95: 255 }).improvement).toBeCloseTo(0.15);
  });

  test("latency that varies more is no gain, however much better it is", () => {
    const { variance, conclusion } = decisionOf({ p50: 10, p95: 235 });
    expect(variance).toBeCloseTo(1.125);
    expect(conclusion).toBe("plain routing is better");
  });

  test("what is worse elsewhere counts against it", () => {
    const good = decisionOf({ p50: 75, p95: 225 });
    const worse = good.level.differences.map((one) =>
      one.metric.name === "e2eP50Ms" ? { ...one, outcome: "worse" as const } : one,
    );
    const decision = decisionOf({ p50: 75, p95: 225 }, { differences: worse });
    expect(decision).toMatchObject({ worse: ["E2E p50"], conclusion: "plain routing is better" });
  });

  test("what cannot be compared cannot be decided, nor what was not reached", () => {
    const verdict = { kind: "not-comparable", reasons: [] } as const;
    expect(decisionOf({ p50: 75, p95: 225 }, { verdict }).conclusion).toBe("cannot be decided");
    expect(decisionOf({ p50: 75, p95: Infinity }).conclusion).toBe("cannot be decided");
    // Of what neither reached nobody knows that it is the same.
    const neither = decisionOf({ p50: 40, p95: Infinity }, {}, { p50: 100, p95: Infinity });
    expect(neither).toMatchObject({ improvement: undefined, conclusion: "cannot be decided" });
  });
});

describe("what of the workload speaks for cache-aware routing", () => {
  const factors = (changes: CellChanges): string[] =>
    workloadFactors([groupOf(cellOf("rr", changes))]).map(({ speaks }) => speaks);
  const tokens = (promptMean: number): NonNullable<CellChanges["tokens"]> => ({
    promptMean,
    outputMean: undefined,
    completedPromptMean: undefined,
    lostPromptMean: undefined,
    outputTotal: undefined,
  });

  test("long prompts for it, short ones against it, unknown ones neither", () => {
    expect(factors({ tokens: tokens(4000) })[1]).toBe("for");
    expect(factors({ tokens: tokens(1500) })[1]).toBe("neither");
    expect(factors({ tokens: tokens(500) })[1]).toBe("against");
    expect(factors({})).toEqual(["unknown", "unknown", "unknown"]);
  });
});
