import { describe, expect, it } from "vitest";
import { PrefillLedger, prefillPairs, workBetween } from "./prefill-ledger.ts";

describe("PrefillLedger", () => {
  it("says what was computed between two moments", () => {
    const ledger = new PrefillLedger();
    const start = ledger.mark(0, 0);
    ledger.add(0, 10, 100, 5_000);
    ledger.add(0, 20, 50, 1_250);
    expect(workBetween(start, ledger.mark(0, 30))).toEqual({ tokens: 150, pairs: 6_250, batches: 2 });
    expect(ledger.mark(1, 30)).toMatchObject({ tokens: 0, batches: 0 });
  });

  it("takes prompts that are done at one moment for one batch, whoever is told first", () => {
    const ledger = new PrefillLedger();
    const start = ledger.mark(0, 0);
    const first = ledger.add(0, 10, 100, 0);
    const second = ledger.add(0, 10, 200, 0);
    expect(workBetween(start, second)).toMatchObject({ tokens: 300, batches: 1 });
    expect(workBetween(first, ledger.mark(0, 50))).toEqual({ tokens: 0, pairs: 0, batches: 0 });
  });

  it("starts anew with another replica under the same number", () => {
    const ledger = new PrefillLedger();
    ledger.add(0, 10, 100, 0);
    ledger.reset(0);
    expect(ledger.mark(0, 20).tokens).toBe(0);
  });
});

describe("prefillPairs", () => {
  it("counts each new token against all before it", () => {
    expect(prefillPairs(100, 0)).toBe(5_000);
    expect(prefillPairs(100, 90)).toBe(10 * 95);
    expect(prefillPairs(100, 100)).toBe(0);
  });
});
