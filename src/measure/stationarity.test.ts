import { describe, expect, it } from "vitest";
import type { Account } from "../core/accounts.ts";
import { type RequestRecord, requestRecord } from "../core/request-record.ts";
import { Rng } from "../core/rng.ts";
import { cacheShares } from "./cache-shares.ts";
import { servedRates } from "./served-rates.ts";
import { stationarity } from "./stationarity.ts";
import { kendallTau, leastSquaresSlope } from "./trend.ts";
import type { MeasurementWindow } from "./window.ts";

const SECOND = 1_000_000_000;

/** One server, first come, first served: `perSecond` arrivals for some time, each taking `serviceSeconds`. */
function queue(
  perSecond: number,
  serviceSeconds: number,
  account?: (i: number) => Account,
  seconds = 100,
): RequestRecord[] {
  const rng = new Rng(11);
  let atNs = 0;
  let freeNs = 0;
  const records: RequestRecord[] = [];
  while (atNs < seconds * SECOND) {
    atNs += Math.round((-Math.log(rng.uniform()) / perSecond) * SECOND);
    const startNs = Math.max(atNs, freeNs);
    const outcome = account?.(records.length) ?? "completed";
    if (outcome === "completed") freeNs = startNs + Math.round(serviceSeconds * SECOND);
    const endNs = outcome === "completed" ? freeNs : atNs;
    records.push(
      requestRecord({
        id: String(records.length),
        intendedNs: atNs,
        firstContentNs: startNs + 1000,
        lastContentNs: endNs,
        endNs,
        promptTokens: 10,
        outputTokens: 10,
        account: outcome,
      }),
    );
  }
  return records;
}

const WINDOW: MeasurementWindow = { startNs: 0, endNs: 100 * SECOND, drainNs: 1000 * SECOND };

describe("saturation", () => {
  it("is found where more comes than can be served, with the slope of the queue", () => {
    const found = stationarity(queue(5, 0.3), WINDOW);
    expect(found.saturated).toBe(true);
    // 5 per second come and 3.33 go.
    expect(found.backlogSlopePerSecond).toBeGreaterThan(1);
    expect(found.backlogSlopePerSecond).toBeLessThan(2.4);
    expect(found.ttftTrend).toBe(1);
    expect(found.ttftByDecileMs).toHaveLength(10);
    expect(found.reasons).toEqual([expect.stringMatching(/TTFT rises by arrival/)]);
  });

  it("is found where the queue had grown for long before the window", () => {
    const records = queue(5, 0.3, undefined, 2000);
    const window = { startNs: 1500 * SECOND, endNs: 2000 * SECOND, drainNs: 9000 * SECOND };
    const found = stationarity(records, window);
    expect(found.ttftGrowth).toBeLessThan(1.5);
    expect(found.lateServedRatio).toBeCloseTo(0.67, 1);
    expect(found).toMatchObject({ saturated: true, reasons: [expect.stringMatching(/ended while \d+ arrived/)] });
  });

  it("is not found in a system that keeps up, empty start included", () => {
    for (const perSecond of [1, 2, 2.5])
      expect(stationarity(queue(perSecond, 0.3), WINDOW)).toMatchObject({ saturated: false, reasons: [] });
  });

  it("is found where requests are turned away, although those served are served fast", () => {
    const found = stationarity(
      queue(2, 0.1, (i) => (i % 8 === 0 ? "shed" : "completed")),
      WINDOW,
    );
    expect(found).toMatchObject({ saturated: true, reasons: [expect.stringMatching(/^1\d\.\d % .* turned away$/)] });
  });

  it("is not judged from a handful of requests", () => {
    const found = stationarity(queue(5, 0.3).slice(0, 40), WINDOW);
    expect(found).toMatchObject({ saturated: false, ttftByDecileMs: [], ttftTrend: null });
    expect(found.reasons[0]).toMatch(/40 requests are too few/);
  });

  it("is not judged from a batch that was sent before the first answer could be there", () => {
    const batch = Array.from({ length: 64 }, (_, i) =>
      requestRecord({
        id: String(i),
        intendedNs: i * 100_000,
        firstContentNs: i * 100_000 + SECOND / 10 + (i * SECOND) / 50,
        lastContentNs: 4 * SECOND,
        endNs: 4 * SECOND,
        promptTokens: 10,
        outputTokens: 10,
        account: "completed",
      }),
    );
    const window = { startNs: 0, endNs: 6_300_001, drainNs: 10 * SECOND };
    const reason = "0.006 s are too few to judge: the quickest answer took 3.994 s";
    expect(stationarity(batch, window)).toMatchObject({ saturated: false, reasons: [reason] });
  });

  it("copes with a window in which nothing completed", () => {
    const found = stationarity(
      queue(5, 0.3, () => "failed"),
      WINDOW,
    );
    expect(found).toMatchObject({ saturated: false, ttftGrowth: null });
    expect(found.ttftByDecileMs).toEqual(Array.from({ length: 10 }, () => null));
  });
});

describe("rates", () => {
  it("count what was served in the window, whenever it came, and what was offered in it", () => {
    const records = queue(5, 0.3);
    const window = { startNs: 50 * SECOND, endNs: 100 * SECOND, drainNs: 1000 * SECOND };
    const rates = servedRates(records, window);
    expect(rates.requestsPerSecond).toBeCloseTo(1 / 0.3, 1);
    expect(rates.outputTokensPerSecond).toBeCloseTo(10 / 0.3, 0);
    expect(rates.offeredPerSecond).toBeGreaterThan(4);
    expect(rates.requestsPerSecondOverSpan).toBeLessThan(rates.requestsPerSecond);
  });

  it("are 0 of nothing", () => {
    expect(servedRates([], WINDOW)).toEqual({
      offeredPerSecond: 0,
      requestsPerSecond: 0,
      outputTokensPerSecond: 0,
      requestsPerSecondOverSpan: 0,
      outputTokensPerSecondOverSpan: 0,
    });
  });

  it("spread the tokens of an answer that streams across an edge evenly", () => {
    const record = requestRecord({
      id: "x",
      intendedNs: 0,
      firstContentNs: 50 * SECOND,
      lastContentNs: 150 * SECOND,
      endNs: 150 * SECOND,
      promptTokens: 1,
      outputTokens: 101,
      account: "completed",
    });
    expect(servedRates([record], WINDOW).outputTokensPerSecond).toBe(0.51);
    const second = { startNs: 100 * SECOND, endNs: 200 * SECOND, drainNs: 0 };
    expect(servedRates([record], second).outputTokensPerSecond).toBe(0.5);
  });
});

describe("cache shares", () => {
  it("are of prompt tokens, over the requests for which they are known", () => {
    const base = { intendedNs: 0, account: "completed" } as const;
    const records = [
      requestRecord({ ...base, id: "1", promptTokens: 100, predictedCachedTokens: 50, observedCachedTokens: 40 }),
      requestRecord({ ...base, id: "2", promptTokens: 300, predictedCachedTokens: 150 }),
    ];
    expect(cacheShares(records, WINDOW)).toEqual({
      predicted: 0.5,
      observed: 0.4,
      predictedRequests: 2,
      observedRequests: 1,
    });
  });

  it("are unavailable, not 0, where nobody can tell", () => {
    const record = requestRecord({ id: "1", intendedNs: 0, promptTokens: 100, account: "completed" });
    expect(cacheShares([record], WINDOW)).toMatchObject({ predicted: "unavailable", observed: "unavailable" });
  });
});

it("measures trends by order and by slope", () => {
  expect(kendallTau([1, 2, 3, 4])).toBe(1);
  expect(kendallTau([4, 3, 2, 1])).toBe(-1);
  expect(kendallTau([5, 5, 5])).toBe(0);
  expect(kendallTau([])).toBe(0);
  expect(leastSquaresSlope([1, 3, 5])).toBe(2);
  expect(leastSquaresSlope([1])).toBe(0);
});
