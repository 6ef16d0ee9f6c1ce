import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LateMark } from "./late-mark.ts";

const MS = 1e6;

function markOf(timesMs: readonly number[]): number {
  const mark = new LateMark();
  for (const ms of timesMs) mark.note(ms * MS);
  return mark.ns / MS;
}

describe("LateMark", () => {
  it("lets nobody wait before a hundred requests have come", () => {
    expect(markOf(Array.from({ length: 99 }, () => 100))).toBe(0);
    expect(markOf(Array.from({ length: 100 }, () => 100))).toBeGreaterThan(0);
  });

  it("is a time that one in sixteen of the last 2,048 requests could not have kept, to within a bin", () => {
    const times = fc.array(fc.double({ min: 0.01, max: 1e6, noNaN: true }), { minLength: 100, maxLength: 5000 });
    fc.assert(
      fc.property(times, (timesMs) => {
        const last = timesMs.slice(-2048).sort((a, b) => b - a);
        const mark = markOf(timesMs);
        const kept = last[Math.floor(last.length / 16)];
        expect(mark).toBeGreaterThanOrEqual(kept * 0.999999);
        expect(mark).toBeLessThanOrEqual(kept * 2 ** (1 / 32) * 1.000001);
      }),
    );
  });

  it("follows what is possible: a fleet that gets slower has a later mark, and an earlier one when that is over", () => {
    const calm = Array.from({ length: 2048 }, () => 100);
    const slow = Array.from({ length: 2048 }, () => 900);
    expect(markOf([...calm, ...slow])).toBe(markOf(slow));
    expect(markOf([...calm, ...slow, ...calm])).toBe(markOf(calm));
  });

  it("takes times beyond all bounds for the longest or shortest it knows", () => {
    expect(markOf(Array.from({ length: 200 }, () => Number.POSITIVE_INFINITY))).toBeGreaterThan(3.6e6);
    expect(markOf(Array.from({ length: 200 }, () => 0))).toBeLessThan(0.0011);
  });
});
