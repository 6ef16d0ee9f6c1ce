import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RetryBudget } from "./retry-budget.ts";

function retriesWithin(budget: RetryBudget, wanted: number, nowMs: number): number {
  let made = 0;
  for (let i = 0; i < wanted && budget.hasRoom(nowMs); i++) {
    budget.retried(nowMs);
    made++;
  }
  return made;
}

describe("a retry budget", () => {
  test("is a share of what came in the last ten seconds, and a few more", () => {
    const budget = new RetryBudget({ share: 0.2, perSecond: 1 });
    expect(retriesWithin(budget, 1000, 0)).toBe(10);
    for (let i = 0; i < 50; i++) budget.offered(5000);
    expect(retriesWithin(budget, 1000, 5000)).toBe(10);
    // The first ten are forgotten, the others not yet.
    expect(retriesWithin(budget, 1000, 12_000)).toBe(10);
    expect(retriesWithin(budget, 1000, 60_000)).toBe(10);
  });

  test("of nothing allows nothing", () => {
    const budget = new RetryBudget({ share: 0, perSecond: 0 });
    for (let i = 0; i < 50; i++) budget.offered(0);
    expect(budget.hasRoom(0)).toBe(false);
  });

  test("can be changed, and remembers what was used", () => {
    const budget = new RetryBudget({ share: 0, perSecond: 1 });
    retriesWithin(budget, 10, 0);
    budget.configure({ share: 0, perSecond: 2 });
    expect(retriesWithin(budget, 1000, 0)).toBe(10);
  });

  test("is never overdrawn, however requests and failures come", () => {
    const steps = fc.array(fc.record({ waitMs: fc.nat(3000), offered: fc.nat(20), failed: fc.nat(20) }), {
      maxLength: 40,
    });
    fc.assert(
      fc.property(steps, (all) => {
        const budget = new RetryBudget({ share: 0.5, perSecond: 1 });
        const log: { ms: number; offered: number; retries: number }[] = [];
        let nowMs = 0;
        for (const { waitMs, offered, failed } of all) {
          nowMs += waitMs;
          for (let i = 0; i < offered; i++) budget.offered(nowMs);
          const retries = retriesWithin(budget, failed, nowMs);
          log.push({ ms: nowMs, offered, retries });
          const recent = log.filter(({ ms }) => Math.floor(ms / 1000) > Math.floor(nowMs / 1000) - 10);
          const sum = (key: "offered" | "retries"): number => recent.reduce((total, each) => total + each[key], 0);
          const isOverdrawn = sum("retries") > 0.5 * sum("offered") + 10;
          // What was within bounds when it was made may exceed them when the requests it was a share of are forgotten.
          expect(isOverdrawn && retries > 0).toBe(false);
        }
      }),
    );
  });
});
