import { describe, expect, test } from "vitest";
import { requestRecord, type RequestRecord } from "../../core/request-record.ts";
import type { AiperfMetric } from "../../wire/aiperf/metric.ts";
import type { AiperfErrorGroup, AiperfSummary } from "../../wire/aiperf/summary-file.ts";
import { accountingOf, cellOfRecords, cellOfSummary } from "./from-aiperf.ts";

const PLACE = { source: 0, arm: "on", level: { speed: 1, workers: 2 }, run: 1, slo: {} };

function summaryOf(metrics: Record<string, AiperfMetric>, errors: readonly AiperfErrorGroup[] = []): AiperfSummary {
  return {
    schemaVersion: undefined,
    aiperfVersion: undefined,
    metrics: new Map(Object.entries(metrics)),
    inputConfig: {},
    wasCancelled: false,
    errors,
    startTime: undefined,
    endTime: undefined,
    gpus: [],
  };
}

const counted = (avg: number): AiperfMetric => ({ unit: "requests", avg, percentiles: [] });
const refused = (code: number, message: string, count: number): AiperfErrorGroup => ({
  error: { code, type: "HTTPError", message },
  count,
});

describe("a run of AIPerf from its summary alone", () => {
  test("what failed is counted by status and message: overload is shed, the rest is not", () => {
    const summary = summaryOf({ request_count: counted(900), error_request_count: counted(100) }, [
      refused(503, "all workers are busy", 60),
      refused(500, "it broke", 30),
    ]);
    // Ten errors are counted and described nowhere.
    expect(accountingOf(summary)).toMatchObject({ offered: 1000, completed: 900, shed: 60, failed: 40 });
    expect(cellOfSummary(summary, PLACE).refusals.map(({ status, count }) => [status, count])).toEqual([
      [503, 60],
      [500, 30],
      [null, 10],
    ]);
  });

  test("latencies come in milliseconds, whatever their unit, and what failed pushes them up", () => {
    const ttft = {
      unit: "s",
      avg: 0.5,
      percentiles: [
        [0.5, 0.4],
        [0.9, 0.8],
        [0.95, 0.9],
      ],
    } as const;
    const metrics = { request_count: counted(900), error_request_count: counted(100), time_to_first_token: ttft };
    const { readings } = cellOfSummary(summaryOf(metrics), PLACE).latencies.ttftMs;
    expect(readings.completed).toMatchObject({ n: 900, p50: { state: "ok", value: 400 }, mean: { value: 500 } });
    expect(readings.offered.n).toBe(1000);
    expect(readings.offered.p50).toEqual({ state: "between", low: 400, high: 800 });
    expect(readings.offered.p95).toEqual({ state: "not-reached" });
  });

  test("AIPerf's inter-token latency is the time per output token, its inter-chunk latency the gap", () => {
    const metric = (avg: number): AiperfMetric => ({ unit: "ms", avg, percentiles: [] });
    const metrics = { request_count: counted(10), inter_token_latency: metric(7), inter_chunk_latency: metric(9) };
    const { tpotMs, itlMs } = cellOfSummary(summaryOf(metrics), PLACE).latencies;
    expect([tpotMs, itlMs].map(({ readings }) => readings.completed.mean)).toEqual([
      { state: "ok", value: 7 },
      { state: "ok", value: 9 },
    ]);
  });
});

describe("a run of AIPerf from its records", () => {
  /** Requests so many milliseconds apart that take a second each. */
  const sentEvery = (ms: number, count: number): RequestRecord[] =>
    Array.from({ length: count }, (_, at) =>
      requestRecord({
        id: String(at),
        intendedNs: at * ms * 1e6,
        sentNs: at * ms * 1e6,
        firstContentNs: at * ms * 1e6 + 1e8,
        lastContentNs: at * ms * 1e6 + 1e9,
        endNs: at * ms * 1e6 + 1e9,
        promptTokens: 10,
        outputTokens: 10,
        account: "completed",
      }),
    );

  test("has rates in its window where requests kept coming while others were answered", () => {
    const { rates } = cellOfRecords(sentEvery(100, 101), undefined, PLACE);
    expect(rates.requestsPerSecond).toBeCloseTo(9.1, 1);
    expect(rates.offeredPerSecond).toBeCloseTo(10.1, 1);
  });

  test.each([1, 64])("has none in a window that was over before the first of %i answers", (count) => {
    const { rates } = cellOfRecords(sentEvery(0.1, count), undefined, PLACE);
    expect(rates).toMatchObject({
      offeredPerSecond: undefined,
      requestsPerSecond: undefined,
      outputTokensPerSecond: undefined,
    });
    expect(rates.outputTokensPerSecondOverSpan).toBeCloseTo(10 * count, -1);
  });
});
