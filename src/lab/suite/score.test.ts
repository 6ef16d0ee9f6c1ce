import { NS_PER_MS, NS_PER_SECOND } from "../../core/clock.ts";
import { type RequestRecord, UNAVAILABLE } from "../../core/request-record.ts";
import { describe, expect, test } from "vitest";
import { sampleRun } from "./run-sample.ts";
import { scoreArm } from "./score.ts";

const WINDOW = { startNs: 10 * NS_PER_SECOND, endNs: 20 * NS_PER_SECOND, drainNs: 5 * NS_PER_SECOND };

function request(atSeconds: number, ttftMs: number, overrides: Partial<RequestRecord> = {}): RequestRecord {
  const intendedNs = atSeconds * NS_PER_SECOND;
  const firstNs = intendedNs + ttftMs * NS_PER_MS;
  const lastNs = firstNs + 90 * NS_PER_MS;
  return {
    id: String(atSeconds),
    session: "s",
    turn: 0,
    intendedNs,
    sentNs: intendedNs,
    placedNs: intendedNs,
    firstByteNs: firstNs,
    firstContentNs: firstNs,
    lastContentNs: lastNs,
    endNs: lastNs,
    promptTokens: 100,
    outputTokens: 10,
    predictedCachedTokens: UNAVAILABLE,
    observedCachedTokens: 25,
    worker: "a",
    attempts: 1,
    account: "completed",
    shedReason: undefined,
    failure: undefined,
    decision: undefined,
    tokenTimes: undefined,
    ...overrides,
  };
}

describe("the score of an arm", () => {
  test("is that of the requests of the window, pooled over runs", () => {
    const first = [request(9, 999), request(10, 100), request(14, 200), request(20, 999)];
    const second = [request(12, 300), request(19, 400)];
    const slo = { ttftMs: 250 };
    const score = scoreArm(
      [first, second].map((records) => sampleRun(records, WINDOW, 2, slo)),
      2,
    );
    expect(score).toMatchObject({
      offered: 4,
      completed: 4,
      ttftP50Ms: 250,
      ttftP95Ms: 385,
      e2eMeanMs: 340,
      tpotP95Ms: 10,
      goodputShare: 0.5,
      hitShare: 0.25,
    });
    // The parts of the first run hold 100 and 200 and nothing; those of the second 300 and 400.
    expect(score.without.e2eMeanMs).toEqual([440, 340, (190 + 290 + 490) / 3, (190 + 290 + 390) / 3].map(rounded));
  });

  test("counts a request that did not complete, or not in time, as never reached", () => {
    const late = request(15, 100, { endNs: 26 * NS_PER_SECOND });
    const shed = request(16, 100, { account: "shed" });
    const score = scoreArm([sampleRun([request(11, 100), late, shed], WINDOW, 2, {})], 2);
    expect(score).toMatchObject({ offered: 3, completed: 1, ttftP95Ms: null, e2eMeanMs: null, tpotP95Ms: null });
    expect(score.goodputShare).toBeCloseTo(1 / 3, 12);
    // Both are in the second part: without it everything was reached.
    expect(score.without.ttftP95Ms).toEqual([null, 100]);
  });
});

function rounded(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}
