import { describe, expect, test } from "vitest";
import { accountingOf, cellOf, groupOf, latencyOf } from "./cells.test-support.ts";
import { type Difference, differenceOf } from "./differences.ts";
import type { ArmAtLevel } from "./groups.ts";
import { judgedMetrics } from "./judged-metrics.ts";

const METRICS = judgedMetrics({}, true);

function metric(name: string): (typeof METRICS)[number] {
  const found = METRICS.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no metric ${name}`);
  return found;
}

/** An arm whose runs delivered so many tokens a second. */
function delivering(arm: string, ...tokensPerSecond: readonly number[]): ArmAtLevel {
  const rates = cellOf(arm).rates;
  return groupOf(
    ...tokensPerSecond.map((outputTokensPerSecond, i) =>
      cellOf(arm, { run: i + 1, rates: { ...rates, outputTokensPerSecond } }),
    ),
  );
}

function ofTokens(baseline: readonly number[], arm: readonly number[]): Difference {
  return differenceOf(metric("outputTokensPerSecond"), delivering("rr", ...baseline), delivering("kv", ...arm));
}

describe("a difference and its noise", () => {
  test("from runs: Welch's test on logarithms", () => {
    const { change, chance, interval, noise } = ofTokens([100, 102, 98], [120, 123, 117]);
    expect(noise).toBe("runs");
    expect(change).toBeCloseTo(0.2);
    expect(chance).toBeLessThan(0.01);
    expect(interval?.low).toBeGreaterThan(0.1);
    expect(interval?.high).toBeLessThan(0.3);
  });

  test("runs that overlap show nothing", () => {
    const { chance, interval } = ofTokens([100, 130, 80], [110, 90, 125]);
    expect(chance).toBeGreaterThan(0.3);
    expect(interval?.low).toBeLessThan(0);
    expect(interval?.high).toBeGreaterThan(0);
  });

  test("equal runs differ by nothing at all, for sure", () => {
    expect(ofTokens([100, 100], [100, 100])).toMatchObject({ change: 0, chance: 1, interval: { low: 0, high: 0 } });
  });

  test("one run each and nothing else says nothing of noise", () => {
    expect(ofTokens([100], [200])).toMatchObject({ change: 1, interval: undefined, chance: undefined, noise: "none" });
  });

  test("from counts, for what completed", () => {
    const groups = [1000, 860].map((completed) => groupOf(cellOf("x", { accounting: accountingOf(completed) })));
    const { change, chance, noise } = differenceOf(metric("completedShare"), groups[0], groups[1]);
    expect(noise).toBe("counts");
    expect(change).toBeCloseTo(-0.14);
    expect(chance).toBeLessThan(1e-6);
  });

  test("what only one arm reached is as sure as the counts behind it", () => {
    const cell = (completed: number, p95: number): ArmAtLevel =>
      groupOf(
        cellOf("x", { accounting: accountingOf(completed), latencies: { ttftMs: latencyOf({ p95: 1 }, { p95 }) } }),
      );
    const lost = differenceOf(metric("ttftP95Ms"), cell(1000, 500), cell(860, Infinity));
    expect(lost).toMatchObject({ change: Infinity, noise: "counts" });
    expect(lost.chance).toBeLessThan(1e-6);
    expect(differenceOf(metric("ttftP95Ms"), cell(860, Infinity), cell(1000, 500)).change).toBe(-1);
  });

  test("from single runs of which only percentiles are known: ranges that do not touch", () => {
    const cell = (values: readonly [number, number, number]): ArmAtLevel => {
      const latency = latencyOf({ p50: values[1] });
      const points = [
        [0.25, values[0]],
        [0.5, values[1]],
        [0.75, values[2]],
      ] as const;
      return groupOf(cellOf("x", { latencies: { ttftMs: { ...latency, points: { ...latency.points, points } } } }));
    };
    const apart = differenceOf(metric("ttftP50Ms"), cell([10, 20, 30]), cell([31, 40, 50]));
    expect(apart).toMatchObject({ change: 1, chance: 0, noise: "ranges" });
    const touching = differenceOf(metric("ttftP50Ms"), cell([10, 20, 30]), cell([30, 40, 50]));
    expect(touching).toMatchObject({ change: 1, chance: 1, noise: "ranges" });
  });
});
