import { describe, expect, test } from "vitest";
import { type RequestRecord, requestRecord } from "../../core/request-record.ts";
import { accountingOf, cellOf, groupOf, latencyOf } from "./cells.test-support.ts";
import { type Difference, differenceOf } from "./differences.ts";
import { collectEvidence, IdNumbers } from "./evidence.ts";
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

  test("from counts in a single run with records too: a burst of refusals is no accident of its tenth", () => {
    const ids = new IdNumbers();
    const arm = (name: string, refused: number): ArmAtLevel => {
      const records = Array.from({ length: 500 }, (_, at) =>
        requestRecord({
          id: String(at),
          intendedNs: at * 2e6,
          endNs: at * 2e6 + 1,
          promptTokens: 10,
          account: at >= 250 && at < 250 + refused ? "shed" : "completed",
        }),
      );
      const evidence = [collectEvidence(records, { startNs: 0, endNs: 1e9, drainNs: 1e9 }, {}, ids)];
      return { ...groupOf(cellOf(name, { accounting: accountingOf(500 - refused, 500) })), evidence };
    };
    const { chance, change, noise } = differenceOf(metric("completedShare"), arm("kv", 0), arm("kv-shed", 95));
    expect(noise).toBe("counts");
    expect(change).toBeCloseTo(-0.19);
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

  test("an arm that delivered nothing is worse by the counts behind it, and one beside such a baseline better", () => {
    const delivered = (completed: number, tokens: number): ArmAtLevel => ({
      ...delivering("x", tokens),
      accounting: accountingOf(completed),
    });
    const lost = differenceOf(metric("outputTokensPerSecond"), delivered(1000, 800), delivered(0, 0));
    expect(lost).toMatchObject({ change: -1, noise: "counts" });
    expect(lost.chance).toBeLessThan(1e-6);
    const won = differenceOf(metric("outputTokensPerSecond"), delivered(0, 0), delivered(1000, 800));
    expect(won).toMatchObject({ change: Infinity, noise: "counts" });
    const both = differenceOf(metric("outputTokensPerSecond"), delivered(0, 0), delivered(0, 0));
    expect(both).toMatchObject({ change: 0 });
    const late = differenceOf(metric("outputTokensPerSecond"), delivered(1000, 800), delivered(1000, 0));
    expect(late).toMatchObject({ change: -1, noise: "none", chance: undefined });
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

  test("from parts, for tokens per second too, so that one run with records is judged", () => {
    const ids = new IdNumbers();
    /** An answer a tenth, of so many tokens and more in every other tenth. */
    const arm = (name: string, tokens: number): ArmAtLevel => {
      const records = Array.from({ length: 10 }, (_, at) =>
        requestRecord({
          id: String(at),
          intendedNs: at * 1e8,
          firstContentNs: at * 1e8 + 1e6,
          lastContentNs: at * 1e8 + 2e6,
          endNs: at * 1e8 + 2e6,
          promptTokens: 10,
          outputTokens: tokens + (at % 2) + (at % 3),
          account: "completed",
        }),
      );
      const evidence = [collectEvidence(records, { startNs: 0, endNs: 1e9, drainNs: 1e9 }, {}, ids)];
      return {
        ...delivering(name, evidence[0].tokensPerSecondByPart.reduce((sum, rate) => sum + rate, 0) / 10),
        evidence,
      };
    };
    const tokens = metric("outputTokensPerSecond");
    const apart = differenceOf(tokens, arm("rr", 100), arm("kv", 120));
    expect(apart.noise).toBe("parts");
    expect(apart.change).toBeCloseTo(0.197, 2);
    expect(apart.chance).toBeLessThan(0.05);
    expect(apart.interval?.low).toBeGreaterThan(0.1);
    expect(differenceOf(tokens, arm("rr", 100), arm("kv", 100))).toMatchObject({ change: 0, chance: 1 });
  });

  test("an arm of which one run stands for all is paired tenth by tenth, and gains no degree of freedom by its copies", () => {
    const answered = (at: number, ttftMs: number): RequestRecord =>
      requestRecord({
        id: String(at),
        intendedNs: at * 1e7,
        firstContentNs: at * 1e7 + ttftMs * 1e6,
        lastContentNs: at * 1e7 + ttftMs * 1e6,
        endNs: at * 1e7 + ttftMs * 1e6,
        promptTokens: 10,
        outputTokens: 1,
        account: "completed",
      });
    const ids = new IdNumbers();
    const group = (arm: string, runs: readonly number[][], slowerMs: readonly number[]): ArmAtLevel => {
      const cells = runs.map(([run, ...repeats]) => cellOf(arm, { run, repeats }));
      const evidence = slowerMs.map((more) =>
        collectEvidence(
          Array.from({ length: 100 }, (_, at) => answered(at, 100 + (at % 7) + more * ((3 * Math.floor(at / 10)) % 7))),
          { startNs: 0, endNs: 1e9, drainNs: 1e9 },
          {},
          ids,
        ),
      );
      const latencies = { ...groupOf(...cells).latencies, ttftMs: latencyOf({ p50: 103 + 3 * slowerMs[0] }).readings };
      return { ...groupOf(...cells), evidence, latencies };
    };
    const of = (baseline: ArmAtLevel, arm: ArmAtLevel): Difference => differenceOf(metric("ttftP50Ms"), baseline, arm);
    const single = of(group("rr", [[1]], [0]), group("kv", [[1]], [5]));
    expect(of(group("rr", [[1, 2, 3]], [0]), group("kv", [[1, 2, 3]], [5]))).toMatchObject({
      chance: single.chance,
      interval: single.interval,
      noise: "parts",
    });
    const uneven = of(group("rr", [[1, 2, 3]], [0]), group("kv", [[1], [2], [3]], [5, 5.5, 6]));
    expect(uneven.noise).toBe("parts");
    expect(uneven.chance).toBeGreaterThan(0.001);
    // Of runs that the other arm does not have nobody knows what they are to be held against.
    expect(of(group("rr", [[1]], [0]), group("kv", [[1], [2]], [5, 6])).noise).toBe("none");
  });
});
