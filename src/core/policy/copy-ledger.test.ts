import { describe, expect, it } from "vitest";
import { CopyLedger, MEMORY_NS } from "./copy-ledger.ts";

const KEY = 77;
const SECOND_NS = 1e9;

/** A ledger to which the same was paid every so often, and the moment of the last payment. */
function paidEvery(everyNs: number, times: number, cost = 100): { ledger: CopyLedger; nowNs: number } {
  const ledger = new CopyLedger();
  for (let i = 0; i < times; i++) ledger.charge(KEY, i * everyNs, cost);
  return { ledger, nowNs: (times - 1) * everyNs };
}

describe("CopyLedger", () => {
  it("knows no rate of a prefix that it has not heard of", () => {
    expect(new CopyLedger().rate(KEY, 0)).toBe(0);
  });

  it("takes one payment for no rate, however large", () => {
    const { ledger, nowNs } = paidEvery(SECOND_NS, 1, 1e9);
    expect(ledger.rate(KEY, nowNs)).toBe(0);
  });

  it("takes many at the same moment for one", () => {
    const { ledger, nowNs } = paidEvery(SECOND_NS / 1000, 8);
    expect(ledger.rate(KEY, nowNs)).toBe(0);
  });

  it("finds the rate after seconds as well as after minutes", () => {
    for (const times of [20, 60, 600]) {
      const { ledger, nowNs } = paidEvery(SECOND_NS, times);
      expect(ledger.rate(KEY, nowNs) * SECOND_NS).toBeGreaterThan(94);
      expect(ledger.rate(KEY, nowNs) * SECOND_NS).toBeLessThan(101);
    }
  });

  it("forgets a prefix for which nobody pays any more", () => {
    const { ledger, nowNs } = paidEvery(SECOND_NS, 60);
    const before = ledger.rate(KEY, nowNs);
    expect(ledger.rate(KEY, nowNs + MEMORY_NS)).toBeLessThan(before / 2);
    expect(ledger.rate(KEY, nowNs + 20 * MEMORY_NS)).toBeLessThan(before / 1e6);
  });

  it("begins anew after it was settled", () => {
    const { ledger, nowNs } = paidEvery(SECOND_NS, 10);
    ledger.settle(KEY);
    expect(ledger.rate(KEY, nowNs)).toBe(0);
    ledger.charge(KEY, nowNs + SECOND_NS, 100);
    expect(ledger.rate(KEY, nowNs + SECOND_NS)).toBe(0);
  });

  it("gives a place to the prefix that came last, and never one's payments to the other", () => {
    const { ledger, nowNs } = paidEvery(SECOND_NS, 10);
    const other = KEY + 4096;
    ledger.charge(other, nowNs, 1);
    expect(ledger.rate(KEY, nowNs)).toBe(0);
    ledger.charge(other, nowNs + SECOND_NS, 1);
    ledger.settle(KEY);
    expect(ledger.rate(other, nowNs + SECOND_NS) * SECOND_NS).toBeCloseTo(0.5, 1);
  });

  it("lets four copies for each replica be made in advance, and one for every hundred requests from then on", () => {
    const ledger = new CopyLedger();
    let made = 0;
    const serve = (requests: number): void => {
      for (let i = 0; i < requests; i++) {
        if (ledger.mayCopy(3)) {
          ledger.settle(KEY);
          made += 1;
        }
        ledger.placed();
      }
    };
    serve(13);
    expect(made).toBe(12);
    serve(10_000);
    expect(made).toBeGreaterThan(108);
    expect(made).toBeLessThan(116);
  });

  it("saves up no more than that", () => {
    const ledger = new CopyLedger();
    for (let i = 0; i < 10_000; i++) ledger.placed();
    for (let i = 0; i < 4; i++) {
      expect(ledger.mayCopy(1)).toBe(true);
      ledger.settle(KEY);
    }
    expect(ledger.mayCopy(1)).toBe(false);
  });
});
