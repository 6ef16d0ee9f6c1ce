import * as fc from "fast-check";
import { expect, it } from "vitest";
import { percentileOfSorted } from "./percentile.ts";

/** numpy's definition, written down as naively as possible. */
function naive(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const position = share * (sorted.length - 1);
  const low = sorted[Math.floor(position)];
  const high = sorted[Math.ceil(position)];
  return low + (high - low) * (position - Math.floor(position));
}

it("interpolates as numpy does by default", () => {
  // numpy.percentile([15, 20, 35, 40, 50], [5, 30, 40, 50, 95])
  const sorted = [15, 20, 35, 40, 50];
  const shares = [0.05, 0.3, 0.4, 0.5, 0.95];
  const expected = [16, 23, 29, 35, 48];
  shares.forEach((share, i) => expect(percentileOfSorted(sorted, share)).toBeCloseTo(expected[i], 9));
});

it("interpolates as AIPerf does", () => {
  // 64 answers of a published run, of 199, 200 and 201 tokens: its export says p99 = 200.37.
  const tokens = [199, 199, ...Array.from({ length: 61 }, () => 200), 201];
  expect(percentileOfSorted(tokens, 0.99)).toBeCloseTo(200.37, 9);
});

it("agrees with sorting and interpolating", () => {
  const values = fc.array(fc.integer({ min: 0, max: 1_000_000 }), { minLength: 1, maxLength: 300 });
  fc.assert(
    fc.property(values, fc.constantFrom(0, 0.05, 0.5, 0.9, 0.95, 0.99, 1), (sample, share) => {
      const sorted = Float64Array.from(sample).sort();
      expect(percentileOfSorted(sorted, share)).toBeCloseTo(naive(sample, share), 3);
    }),
  );
});

it("counts unreached samples as infinite, and only where the percentile needs one", () => {
  const sorted = Array.from({ length: 95 }, (_, i) => i);
  expect(percentileOfSorted(sorted, 0.5, 5)).toBe(49.5);
  expect(percentileOfSorted(sorted, 0.95, 5)).toBe(Infinity);
  // 20 of 21 reached: p95 is the 20th sample exactly, although 0.95 * 20 is not exact in floating point.
  expect(percentileOfSorted(sorted.slice(0, 20), 0.95, 1)).toBe(19);
  expect(percentileOfSorted([], 0.5, 3)).toBe(Infinity);
});

it("has no value for nothing", () => {
  expect(percentileOfSorted([], 0.5)).toBeNaN();
});
