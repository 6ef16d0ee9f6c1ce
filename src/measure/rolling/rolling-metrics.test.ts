import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NS_PER_MS, NS_PER_SECOND } from "../../core/clock.ts";
import { UNAVAILABLE } from "../../core/request-record.ts";
import { HISTOGRAM_RELATIVE_ERROR } from "../duration-histogram.ts";
import { percentileOfSorted } from "../percentile.ts";
import { RollingDistribution } from "./rolling-distribution.ts";
import { type RollingEnd, RollingMetrics } from "./rolling-metrics.ts";

const second = (n: number): number => n * NS_PER_SECOND;
const completed: RollingEnd = {
  account: "completed",
  e2eNs: 800 * NS_PER_MS,
  tpotNs: 20 * NS_PER_MS,
  promptTokens: 1000,
  cachedTokens: 250,
  uncountedTokens: 0,
};

describe("rolling metrics", () => {
  test("say what the last 60 seconds brought and forget what is older", () => {
    const metrics = new RollingMetrics();
    metrics.offered(1, second(1), second(1));
    metrics.firstToken(100 * NS_PER_MS, second(2));
    metrics.content(1, undefined, second(2));
    metrics.content(1, 30 * NS_PER_MS, second(2.03));
    metrics.ended(1, completed, second(3));
    const fresh = metrics.read(second(40));
    expect(fresh).toMatchObject({ offered: 1, completed: 1, windowSeconds: 40, errorRate: 0, cacheHitRate: 0.25 });
    expect(fresh.ttftMs.p50).toBeCloseTo(100, 0);
    expect(fresh.itlMs).toMatchObject({ n: 1 });
    expect(fresh.itlMs.p50).toBeCloseTo(30, 0);
    expect(fresh.e2eMs.p99).toBeCloseTo(800, -1);
    expect(fresh.requestsPerSecond).toBe(1 / 40);
    expect(fresh.outputTokensPerSecond).toBe(2 / 40);
    const later = metrics.read(second(63.5));
    expect(later).toMatchObject({
      offered: 0,
      completed: 0,
      errorRate: null,
      errorRates: null,
      cacheHitRate: UNAVAILABLE,
    });
    expect(later.ttftMs).toEqual({ p50: null, p95: null, p99: null, n: 0 });
    expect(later.windowSeconds).toBe(59.5);
  });

  test("count errors by kind, and shares of what ended", () => {
    const metrics = new RollingMetrics();
    for (const [id, account] of (["completed", "completed", "shed", "failed"] as const).entries()) {
      metrics.offered(id, 0, 0);
      metrics.ended(id, { ...completed, account, cachedTokens: UNAVAILABLE }, second(1));
    }
    const { errors, errorRate, errorRates, e2eMs } = metrics.read(second(2));
    expect(errors).toEqual({ shed: 1, rejected: 0, failed: 1, timedOut: 0, cancelled: 0 });
    expect(errorRate).toBe(0.5);
    expect(errorRates).toMatchObject({ shed: 0.25, failed: 0.25, rejected: 0 });
    expect(e2eMs.n).toBe(2);
  });

  test("show a system that has stalled by what is in flight and how old it is", () => {
    const metrics = new RollingMetrics();
    metrics.offered(1, second(1), second(1));
    metrics.offered(2, second(2), second(2));
    metrics.ended(1, completed, second(3));
    expect(metrics.read(second(300))).toMatchObject({ inFlight: 1, oldestInFlightMs: 298_000, completed: 0 });
    metrics.ended(2, { ...completed, account: "unfinished" }, second(301));
    expect(metrics.read(second(301))).toMatchObject({ inFlight: 0, oldestInFlightMs: null, errorRate: null });
  });

  test("count several events of one read as gaps of nothing between them", () => {
    const metrics = new RollingMetrics();
    metrics.content(3, undefined, second(1));
    metrics.content(2, 40 * NS_PER_MS, second(1.04));
    const { itlMs, outputTokensPerSecond } = metrics.read(second(2));
    expect(itlMs).toMatchObject({ n: 4, p50: 0 });
    expect(outputTokensPerSecond).toBe(2.5);
  });

  test("take the usage's word for tokens in the end", () => {
    const metrics = new RollingMetrics();
    metrics.offered(1, 0, 0);
    metrics.content(4, undefined, second(1));
    metrics.ended(1, { ...completed, uncountedTokens: 8 }, second(2));
    expect(metrics.read(second(4)).outputTokensPerSecond).toBe(3);
  });

  test("of several processes merge into what one would have counted", () => {
    const events = fc.array(
      fc.record({
        atMs: fc.integer({ min: 0, max: 200_000 }),
        process: fc.integer({ min: 0, max: 2 }),
        durationNs: fc.integer({ min: 0, max: 1e11 }),
        kind: fc.constantFrom("first", "content", "end"),
      }),
      { maxLength: 120 },
    );
    fc.assert(
      fc.property(events, (unsorted) => {
        const sorted = [...unsorted].sort((a, b) => a.atMs - b.atMs);
        const one = new RollingMetrics();
        const parts = [0, 1, 2].map(() => new RollingMetrics());
        for (const [id, { atMs, process, durationNs, kind }] of sorted.entries()) {
          const nowNs = atMs * NS_PER_MS;
          for (const metrics of [one, parts[process]]) {
            if (kind === "first") metrics.firstToken(durationNs, nowNs);
            else if (kind === "content") metrics.content(1, durationNs, nowNs);
            else {
              metrics.offered(id, nowNs, nowNs);
              metrics.ended(id, { ...completed, e2eNs: durationNs }, nowNs);
            }
          }
        }
        const endNs = second(201);
        const merged = new RollingMetrics();
        for (const part of parts) {
          part.read(endNs);
          for (let at = 0; at <= 201; at++) {
            const slice = part.slice(at);
            if (slice !== undefined) merged.absorb(JSON.parse(JSON.stringify(slice)) as typeof slice);
          }
        }
        expect(merged.read(endNs)).toEqual(one.read(endNs));
      }),
    );
  });

  test("add what other processes have in flight", () => {
    const metrics = new RollingMetrics();
    metrics.setInFlightElsewhere(0, { count: 3, oldestNs: second(5) });
    metrics.setInFlightElsewhere(1, { count: 0, oldestNs: undefined });
    expect(metrics.read(second(10))).toMatchObject({ inFlight: 3, oldestInFlightMs: 5000 });
  });
});

describe("a rolling distribution", () => {
  test("has the percentiles of exactly the slots that are left, to within its precision", () => {
    const values = fc.array(fc.tuple(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 1, max: 1e10 })), {
      minLength: 1,
      maxLength: 300,
    });
    fc.assert(
      fc.property(values, fc.integer({ min: 0, max: 4 }), (added, cleared) => {
        const distribution = new RollingDistribution(5);
        for (const [slot, value] of added) distribution.add(slot, value);
        distribution.clear(cleared);
        const left = added.flatMap(([slot, value]) => (slot === cleared ? [] : value)).sort((a, b) => a - b);
        const { n, p50, p95, p99 } = distribution.latency(1);
        expect(n).toBe(left.length);
        if (n === 0) return;
        for (const [share, value] of [
          [0.5, p50],
          [0.95, p95],
          [0.99, p99],
        ] as const) {
          const exact = percentileOfSorted(left, share);
          expect(Math.abs((value ?? NaN) - exact)).toBeLessThanOrEqual(2 * HISTOGRAM_RELATIVE_ERROR * left[n - 1]);
        }
      }),
    );
  });
});
