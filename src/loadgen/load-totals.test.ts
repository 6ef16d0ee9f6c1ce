import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ACCOUNTS } from "../core/accounts.ts";
import { type RequestRecord, requestRecord, UNAVAILABLE } from "../core/request-record.ts";
import { LoadTotals } from "./load-totals.ts";

const records: fc.Arbitrary<RequestRecord> = fc
  .record({
    account: fc.constantFrom(...ACCOUNTS),
    gaps: fc.array(fc.integer({ min: 0, max: 1e9 }), { maxLength: 6 }),
    ttft: fc.integer({ min: 0, max: 1e10 }),
    turn: fc.integer({ min: 0, max: 4 }),
    worker: fc.constantFrom("a", "b", undefined),
    cached: fc.option(fc.integer({ min: 0, max: 500 }), { nil: UNAVAILABLE }),
  })
  .map(({ account, gaps, ttft, turn, worker, cached }) => {
    const timesNs = Float64Array.from([
      ttft,
      ...gaps.map((_, at) => gaps.slice(0, at + 1).reduce((a, b) => a + b, ttft)),
    ]);
    return requestRecord({
      id: "r",
      intendedNs: 0,
      promptTokens: 500,
      outputTokens: timesNs.length,
      account,
      turn,
      worker,
      observedCachedTokens: cached,
      firstContentNs: timesNs[0],
      lastContentNs: timesNs[timesNs.length - 1],
      tokenTimes: { form: "chunks", timesNs },
      failure: account === "failed" ? { status: 500, message: "no" } : undefined,
    });
  });

describe("the totals of a load", () => {
  test("of several processes are exactly those of one", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(records, fc.integer({ min: 0, max: 2 })), { maxLength: 40 }), (all) => {
        const one = new LoadTotals();
        const parts = [0, 1, 2].map(() => new LoadTotals());
        for (const [record, process] of all) for (const totals of [one, parts[process]]) totals.add(record);
        const merged = new LoadTotals();
        for (const part of parts) {
          const data = part.toData();
          merged.absorb(JSON.parse(JSON.stringify(data)) as typeof data);
        }
        expect(merged.toData()).toEqual(one.toData());
        for (const name of ["ttft", "tpot", "itl", "e2e"] as const) {
          expect(merged.latencyMs(name)).toEqual(one.latencyMs(name));
        }
      }),
      { numRuns: 100 },
    );
  });

  test("count what did not complete as never reached among the offered", () => {
    const totals = new LoadTotals();
    const ok = { id: "1", intendedNs: 0, promptTokens: 9, firstContentNs: 5e6, lastContentNs: 6e6, outputTokens: 2 };
    totals.add(requestRecord({ ...ok, account: "completed" }));
    totals.add(requestRecord({ id: "2", intendedNs: 0, promptTokens: 9, account: "shed" }));
    expect(totals.latencyMs("ttft").completed).toMatchObject({ n: 1, p50: 5 });
    expect(totals.latencyMs("ttft").offered).toMatchObject({ n: 2, p50: null, states: { p50: "not-reached" } });
    expect(totals.cacheHitRate()).toBe(UNAVAILABLE);
  });

  test("stay small where every failure says something else, and count each of them", () => {
    const totals = new LoadTotals();
    for (let tokens = 0; tokens < 1000; tokens++) {
      const failure = { status: 400, message: `the prompt has ${tokens} tokens` };
      totals.add(requestRecord({ id: "r", intendedNs: 0, promptTokens: 9, account: "rejected", failure }));
    }
    const merged = new LoadTotals();
    for (let process = 0; process < 2; process++) merged.absorb(totals.toData());
    for (const [counted, all] of [
      [totals, 1000],
      [merged, 2000],
    ] as const) {
      const failures = counted.failures();
      expect(failures.size).toBeLessThanOrEqual(101);
      expect(failures.get("rejected: other messages")).toBe(all - (failures.size - 1) * (all / 1000));
      expect([...failures.values()].reduce((sum, count) => sum + count, 0)).toBe(all);
    }
  });
});
