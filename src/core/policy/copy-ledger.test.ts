import { describe, expect, it } from "vitest";
import { CopyLedger, MEMORY_NS } from "./copy-ledger.ts";

const KEY = 77;

describe("CopyLedger", () => {
  it("owes nothing for a prefix it has not heard of", () => {
    expect(new CopyLedger().debt(KEY, 0)).toBe(0);
  });

  it("adds up what was charged, and fades it with time", () => {
    const ledger = new CopyLedger();
    ledger.charge(KEY, 0, 100);
    ledger.charge(KEY, MEMORY_NS, 10);
    expect(ledger.debt(KEY, MEMORY_NS)).toBeCloseTo(100 / Math.E + 10);
    expect(ledger.debt(KEY, 20 * MEMORY_NS)).toBeLessThan(1e-5);
  });

  it("owes nothing after it was settled", () => {
    const ledger = new CopyLedger();
    ledger.charge(KEY, 0, 100);
    ledger.settle(KEY);
    expect(ledger.debt(KEY, 0)).toBe(0);
  });

  it("gives a place to the prefix that came last, and never one's debt to the other", () => {
    const ledger = new CopyLedger();
    const other = KEY + 4096;
    ledger.charge(KEY, 0, 100);
    ledger.charge(other, 0, 1);
    expect(ledger.debt(other, 0)).toBe(1);
    expect(ledger.debt(KEY, 0)).toBe(0);
    ledger.settle(KEY);
    expect(ledger.debt(other, 0)).toBe(1);
  });
});
