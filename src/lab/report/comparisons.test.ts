import { describe, expect, test } from "vitest";
import { cellOf, groupOf, latencyOf } from "./cells.test-support.ts";
import { type ArmComparison, compareAll } from "./comparisons.ts";
import type { ArmAtLevel } from "./groups.ts";

const NOTHING_KNOWN = { settings: new Map(), undeclared: new Map() };

/** An arm with three runs whose TTFT lie around a value. */
function arm(name: string, concurrency: number, p50: number, workers = 2): ArmAtLevel {
  return groupOf(
    ...[0.99, 1, 1.01].map((factor, i) =>
      cellOf(name, {
        run: i + 1,
        level: { concurrency, workers },
        latencies: { ttftMs: latencyOf({ p50: factor * p50, p95: factor * p50 }) },
      }),
    ),
  );
}

function comparisonOf(
  groups: readonly ArmAtLevel[],
  known: Parameters<typeof compareAll>[3] = NOTHING_KNOWN,
): ArmComparison {
  const [comparison] = compareAll(groups, ["rr", "kv"], "rr", known);
  return comparison;
}

describe("an arm against the baseline", () => {
  test("level by level, the lowest first", () => {
    const groups = [arm("rr", 80, 100), arm("rr", 40, 100), arm("kv", 80, 50), arm("kv", 40, 50)];
    const { levels, missing } = comparisonOf(groups);
    expect(levels.map(({ level }) => level.concurrency)).toEqual([40, 80]);
    expect(missing).toEqual([]);
  });

  test("a level that only one of them has is named with the arm that lacks it", () => {
    const { levels, missing } = comparisonOf([arm("rr", 40, 100), arm("kv", 40, 50), arm("kv", 80, 50)]);
    expect(levels).toHaveLength(1);
    expect(missing).toEqual([{ arm: "rr", level: { concurrency: 80, workers: 2 } }]);
    expect(comparisonOf([arm("rr", 40, 100)])).toMatchObject({ levels: [], verdict: "not-comparable" });
  });

  test("fleets of other sizes are set side by side where the load is the same, and cannot be compared", () => {
    const { levels, verdict } = comparisonOf([arm("rr", 40, 100), arm("kv", 40, 50, 4)]);
    expect(levels[0].obstacles.map(({ code }) => code)).toEqual(["unequal-workers"]);
    expect(verdict).toBe("not-comparable");
    // Two candidates: nobody could say which.
    expect(comparisonOf([arm("rr", 40, 100), arm("rr", 40, 100, 3), arm("kv", 40, 50, 4)]).levels).toEqual([]);
  });

  test("equal settings make it an A/A comparison, unknown ones do not", () => {
    const groups = [arm("rr", 40, 100), arm("kv", 40, 100)];
    expect(comparisonOf(groups).isSameArm).toBe(false);
    const same = new Map([["policy", "x"]]);
    const settings = new Map([
      ["rr", same],
      ["kv", same],
    ]);
    expect(comparisonOf(groups, { settings, undeclared: new Map() }).isSameArm).toBe(true);
  });

  test("what was not declared stands in the way", () => {
    const undeclared = new Map([["kv", ["kv has another image"]]]);
    const { levels } = comparisonOf([arm("rr", 40, 100), arm("kv", 40, 50)], { settings: new Map(), undeclared });
    expect(levels[0].verdict).toEqual({ kind: "not-comparable", reasons: ["kv has another image"] });
  });
});
