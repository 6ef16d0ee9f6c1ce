import { describe, expect, it } from "vitest";
import { NS_PER_SECOND } from "../clock.ts";
import { DrainRates, type ReplicaDrainRates } from "../load/drain-rates.ts";
import { createLoadColumns } from "../load/load-columns.ts";
import type { BusyKnob } from "./busy.ts";
import { drainMs, drainSeconds, retryAfterMs } from "./retry-after.ts";

const RATES: ReplicaDrainRates = { completionsPerSecond: 2, prefillTokensPerSecond: 1_000, blocksPerSecond: 10 };
const SLOTS: BusyKnob = { knob: "batchSlotsFraction", value: 1, threshold: 1, used: 64, capacity: 64 };

function ratesOf(completions: readonly number[]): DrainRates {
  const rates = new DrainRates({ maxReplicas: 3 });
  for (const [replica, count] of completions.entries()) {
    rates.becameBusy(replica, 0);
    for (let i = 0; i < count; i++) rates.requestCompleted(replica, NS_PER_SECOND, 1);
  }
  return rates;
}

describe("drainMs", () => {
  it.each([
    [10, 2, 5_000],
    [1, 1_000, 100],
    [1_000, 1, 60_000],
    [5, 0, 1_000],
  ])("%d at %d per second is %d ms", (amount, perSecond, expected) => {
    expect(drainMs(amount, perSecond)).toBe(expected);
  });
});

describe("drainSeconds", () => {
  it("needs one completion at the threshold, and the excess more above it", () => {
    expect(drainSeconds([SLOTS], RATES)).toBe(0.5);
    expect(drainSeconds([{ ...SLOTS, used: 67, value: 67 / 64 }], RATES)).toBe(2);
  });

  it("waits for the slowest of several watermarks", () => {
    const blocks: BusyKnob = { knob: "kvBlocksFraction", value: 1.29, threshold: 1, used: 129, capacity: 100 };
    expect(drainSeconds([SLOTS, blocks], RATES)).toBe(3);
  });

  it("measures both prefill watermarks in tokens", () => {
    const steps: BusyKnob = { knob: "prefillStepFraction", value: 2, threshold: 1, used: 1_999, capacity: 1_000 };
    const tokens: BusyKnob = { knob: "prefillTokens", value: 2_999, threshold: 1_000, used: 2_999, capacity: 1 };
    expect(drainSeconds([steps], RATES)).toBe(1);
    expect(drainSeconds([tokens], RATES)).toBe(2);
  });

  it("does not know without the rate that matters", () => {
    expect(drainSeconds([SLOTS], { ...RATES, completionsPerSecond: 0 })).toBeUndefined();
  });

  it("is not thrown off by fractions that are not exact", () => {
    expect(drainSeconds([{ ...SLOTS, value: 0.28, threshold: 0.28, used: 7, capacity: 25 }], RATES)).toBe(0.5);
  });
});

describe("retryAfterMs", () => {
  const columns = createLoadColumns(3);
  columns.batchSlots.fill(4);
  columns.inFlight.set([4, 4, 4]);
  const watermarks = { batchSlotsFraction: 1 };

  it("is that of the candidate that will be free soonest", () => {
    const soonest = retryAfterMs([0, 1, 2], 3, columns, watermarks, ratesOf([1, 4, 2]), NS_PER_SECOND);
    expect(soonest).toBeGreaterThan(230);
    expect(soonest).toBeLessThanOrEqual(250);
    expect(retryAfterMs([0], 1, columns, watermarks, ratesOf([1, 4, 2]), NS_PER_SECOND)).toBeGreaterThan(900);
  });

  it("prefers an observed rate to none", () => {
    const known = retryAfterMs([0, 1], 2, columns, watermarks, ratesOf([0, 1, 0]), 4 * NS_PER_SECOND);
    expect(known).toBeGreaterThan(2_000);
  });

  it("has a default where nothing is known", () => {
    expect(retryAfterMs([0, 1, 2], 3, columns, watermarks, ratesOf([0, 0, 0]), NS_PER_SECOND)).toBe(1_000);
    expect(retryAfterMs([], 0, columns, watermarks, ratesOf([0, 0, 0]), NS_PER_SECOND)).toBe(1_000);
  });

  it("backs off as far as it may from a replica that has stalled", () => {
    expect(retryAfterMs([0], 1, columns, watermarks, ratesOf([1]), 3_600 * NS_PER_SECOND)).toBe(60_000);
  });
});
