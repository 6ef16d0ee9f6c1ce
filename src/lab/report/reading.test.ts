import { describe, expect, test } from "vitest";
import { type LatencyPoints, middleOf, readingOf, readingsOfPoints, valueOf } from "./reading.ts";

const run = (changes: Partial<LatencyPoints> = {}): LatencyPoints => ({
  n: 100,
  unreached: 0,
  mean: 20,
  points: [
    [0.5, 10],
    [0.9, 30],
    [0.95, 50],
    [0.99, 90],
  ],
  ...changes,
});

describe("a statistic as far as it could be read", () => {
  test("a number, one that was not reached, and one that nobody knows", () => {
    expect([3, Infinity, null, undefined, Number.NaN].map((value) => readingOf(value).state)).toEqual([
      "ok",
      "not-reached",
      "unavailable",
      "unavailable",
      "unavailable",
    ]);
    expect(valueOf({ state: "between", low: 1, high: 3 })).toBeUndefined();
    expect(middleOf({ state: "between", low: 1, high: 3 })).toBe(2);
    expect(middleOf({ state: "not-reached" })).toBeUndefined();
  });
});

describe("runs of which only percentiles are known", () => {
  test("one run has its own percentiles, and p99 only from a thousand requests on", () => {
    const { completed } = readingsOfPoints([run()]);
    expect([completed.p50, completed.p95, completed.mean]).toEqual([10, 50, 20].map((value) => readingOf(value)));
    expect(completed.p99).toEqual({ state: "too-few" });
    expect(readingsOfPoints([run({ n: 1000 })]).completed.p99).toEqual(readingOf(90));
  });

  test("of several, a percentile lies between theirs, and the mean weighs requests", () => {
    const slower = run({ n: 300, mean: 40, points: [[0.5, 16]] });
    const { completed } = readingsOfPoints([run(), slower]);
    expect(completed.n).toBe(400);
    expect(completed.p50).toEqual({ state: "between", low: 10, high: 16 });
    expect(completed.mean).toEqual(readingOf(35));
    // The second run does not say.
    expect(completed.p95).toEqual({ state: "unavailable" });
  });

  test("requests that did not complete push percentiles up, and the highest out of reach", () => {
    const { offered } = readingsOfPoints([run({ n: 92, unreached: 8 })]);
    expect(offered.n).toBe(100);
    expect(offered.p50).toMatchObject({ state: "between", low: 10, high: 30 });
    expect(offered.p95).toEqual({ state: "not-reached" });
    expect(offered.mean).toEqual({ state: "not-reached" });
  });
});
