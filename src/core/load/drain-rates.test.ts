import { describe, expect, it } from "vitest";
import { NS_PER_MS, NS_PER_SECOND } from "../clock.ts";
import { DrainRates } from "./drain-rates.ts";

describe("DrainRates", () => {
  it("is 0 before any observation, at any time", () => {
    const rates = new DrainRates({ maxReplicas: 1 });
    const unknown = { completionsPerSecond: 0, prefillTokensPerSecond: 0, blocksPerSecond: 0 };
    expect(rates.perSecond(0, 0)).toEqual(unknown);
    rates.becameBusy(0, 5);
    expect(rates.perSecond(0, 5)).toEqual(unknown);
    expect(rates.perSecond(0, 1e15)).toEqual(unknown);
  });

  it.each([1, 5, 100])("finds a steady rate after %d seconds", (seconds) => {
    const rates = new DrainRates({ maxReplicas: 2 });
    rates.becameBusy(1, 0);
    for (let tick = 1; tick <= seconds * 20; tick++) {
      const nowNs = tick * 50 * NS_PER_MS;
      rates.prefillFinished(1, nowNs, 300);
      rates.requestCompleted(1, nowNs, 7);
    }
    const found = rates.perSecond(1, seconds * NS_PER_SECOND);
    expect(found.completionsPerSecond / 20).toBeCloseTo(1, 1);
    expect(found.prefillTokensPerSecond / 6_000).toBeCloseTo(1, 1);
    expect(found.blocksPerSecond / 140).toBeCloseTo(1, 1);
    expect(rates.perSecond(0, seconds * NS_PER_SECOND).completionsPerSecond).toBe(0);
  });

  it("does not count idle time, and does count stalled time", () => {
    const rates = new DrainRates({ maxReplicas: 1 });
    rates.becameBusy(0, 0);
    rates.requestCompleted(0, NS_PER_SECOND, 1);
    rates.becameIdle(0, NS_PER_SECOND);
    const before = rates.perSecond(0, NS_PER_SECOND).completionsPerSecond;
    const hourLaterNs = 3_600 * NS_PER_SECOND;
    expect(rates.perSecond(0, hourLaterNs).completionsPerSecond).toBe(before);
    rates.becameBusy(0, hourLaterNs);
    expect(rates.perSecond(0, hourLaterNs).completionsPerSecond).toBe(before);
    expect(rates.perSecond(0, hourLaterNs + 60 * NS_PER_SECOND).completionsPerSecond).toBeLessThan(before / 100);
  });

  it("stays finite when something drains at the very start, or time runs backwards", () => {
    const rates = new DrainRates({ maxReplicas: 1 });
    rates.becameBusy(0, 100);
    rates.requestCompleted(0, 100, 1);
    expect(rates.perSecond(0, 100).completionsPerSecond).toBe(10);
    expect(rates.perSecond(0, 50).completionsPerSecond).toBe(10);
  });

  it("forgets a replica that is reset", () => {
    const rates = new DrainRates({ maxReplicas: 1 });
    rates.becameBusy(0, 0);
    rates.requestCompleted(0, NS_PER_SECOND, 1);
    rates.reset(0);
    expect(rates.perSecond(0, 2 * NS_PER_SECOND).completionsPerSecond).toBe(0);
  });
});
