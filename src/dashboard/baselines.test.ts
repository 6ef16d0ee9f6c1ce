import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type BaselineArm, type BaselineLevel, baselineOf, type BaselineMetric, lookUpBaseline } from "./baselines.ts";

function level(concurrency: number, ttftP95Ms: number | null): BaselineLevel {
  const values = { ttftP95Ms } as Record<BaselineMetric, number | null>;
  return { concurrency, runs: 1, values };
}

function arm(...levels: readonly (readonly [number, number | null])[]): BaselineArm {
  return { role: "kv", policy: "kv-cost", levels: levels.map(([concurrency, value]) => level(concurrency, value)) };
}

describe("a baseline", () => {
  const recorded = arm([60, 400], [80, 500], [120, 900]);

  test("is what was recorded at a level", () => {
    expect(lookUpBaseline(recorded, "ttftP95Ms", 80)).toEqual({ kind: "recorded", value: 500 });
  });

  test("lies straight between two levels, and says between which", () => {
    expect(lookUpBaseline(recorded, "ttftP95Ms", 65)).toEqual({
      kind: "interpolated",
      value: 425,
      between: [60, 80],
    });
    expect(lookUpBaseline(recorded, "ttftP95Ms", 100)).toMatchObject({ value: 700, between: [80, 120] });
  });

  test.each([59, 121, 300])("is absent outside the recorded levels, at %i", (concurrency) => {
    expect(lookUpBaseline(recorded, "ttftP95Ms", concurrency)).toEqual({ kind: "none" });
  });

  test("is absent at and beside a level that could not tell, and there alone", () => {
    const holed = arm([10, 100], [20, null], [30, 300], [40, 400]);
    const kinds = [10, 15, 20, 25, 30, 35].map((at) => lookUpBaseline(holed, "ttftP95Ms", at).kind);
    expect(kinds).toEqual(["recorded", "none", "none", "none", "recorded", "interpolated"]);
  });

  test("is absent where no arm has its role", () => {
    expect(lookUpBaseline(baselineOf({ sources: [], arms: [recorded] }, "warmpath"), "ttftP95Ms", 80).kind).toBe(
      "none",
    );
    expect(baselineOf({ sources: [], arms: [recorded] }, "kv")).toBe(recorded);
  });

  test("never leaves the values of the levels around it", () => {
    const points = fc.uniqueArray(fc.tuple(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 0, max: 5000 })), {
      selector: ([concurrency]) => concurrency,
      minLength: 2,
    });
    fc.assert(
      fc.property(points, fc.integer({ min: 1, max: 300 }), (levels, concurrency) => {
        const sorted = levels.toSorted(([a], [b]) => a - b);
        const reading = lookUpBaseline(arm(...sorted), "ttftP95Ms", concurrency);
        const isInside = concurrency >= sorted[0][0] && concurrency <= sorted.at(-1)![0];
        expect(reading.kind === "none").toBe(!isInside);
        if (reading.kind !== "interpolated") return;
        const around = sorted.filter(([at]) => reading.between.includes(at)).map(([, value]) => value);
        expect(reading.value).toBeGreaterThanOrEqual(Math.min(...around));
        expect(reading.value).toBeLessThanOrEqual(Math.max(...around));
      }),
    );
  });
});
