import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TokenBucket } from "./token-bucket.ts";

const MINUTE_MS = 60_000;

describe("a token bucket", () => {
  test("starts full, fills by the minute, and holds no more than a minute's worth", () => {
    const bucket = new TokenBucket(60, 0);
    bucket.spend(60, 0);
    expect([bucket.level(0), bucket.level(10_000), bucket.level(10 * MINUTE_MS)]).toEqual([0, 10, 60]);
  });

  test("says how long it takes to have one again, debts included", () => {
    const bucket = new TokenBucket(60, 0);
    expect(bucket.waitMs(0)).toBe(0);
    bucket.spend(70, 0);
    expect(bucket.waitMs(0)).toBe(11_000);
    expect(bucket.waitMs(11_000)).toBe(0);
  });

  test("never gives out more than it started with and what time added, whatever is asked when", () => {
    const steps = fc.array(fc.record({ afterMs: fc.nat(30_000), units: fc.integer({ min: 1, max: 50 }) }));
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), steps, (perMinute, asked) => {
        const bucket = new TokenBucket(perMinute, 0);
        let nowMs = 0;
        let spent = 0;
        let largest = 0;
        for (const { afterMs, units } of asked) {
          nowMs += afterMs;
          if (bucket.waitMs(nowMs) > 0) continue;
          bucket.spend(units, nowMs);
          spent += units;
          largest = Math.max(largest, units);
        }
        // Whoever is let in last may overdraw by what it takes.
        expect(spent).toBeLessThanOrEqual(perMinute * (1 + nowMs / MINUTE_MS) + largest + 1e-6);
      }),
    );
  });

  test("a clock that goes back gives nothing and takes nothing", () => {
    const bucket = new TokenBucket(60, 1000);
    bucket.spend(30, 1000);
    expect(bucket.level(500)).toBe(30);
    bucket.spend(1, 500);
    expect(bucket.level(1000)).toBe(29);
  });
});
