import * as fc from "fast-check";
import { expect, it } from "vitest";
import { bucketLowerNs, bucketOf, DurationHistogram, HISTOGRAM_RELATIVE_ERROR } from "./duration-histogram.ts";
import { percentileOfSorted } from "./percentile.ts";

const duration = fc.oneof(
  fc.integer({ min: 0, max: 5000 }),
  fc.integer({ min: 0, max: 100_000_000 }),
  fc.integer({ min: 0, max: 2 ** 53 - 1 }),
);

function histogramOf(values: Iterable<number>): DurationHistogram {
  const histogram = new DurationHistogram();
  for (const value of values) histogram.add(value);
  return histogram;
}

it("puts every duration into a bucket that contains it and is narrow", () => {
  fc.assert(
    fc.property(duration, (value) => {
      const bucket = bucketOf(value);
      const lower = bucketLowerNs(bucket);
      const upper = bucketLowerNs(bucket + 1);
      expect(lower).toBeLessThanOrEqual(value);
      expect(upper).toBeGreaterThan(value);
      expect(upper - lower).toBeLessThanOrEqual(Math.max(1, 2 * HISTOGRAM_RELATIVE_ERROR * value));
    }),
    { numRuns: 2000 },
  );
});

it("has percentiles within its stated error of the exact ones, and an exact mean", () => {
  const values = fc.array(fc.integer({ min: 0, max: 100_000_000 }), { minLength: 1, maxLength: 300 });
  fc.assert(
    fc.property(values, fc.constantFrom(0, 0.5, 0.9, 0.99, 1), (sample, share) => {
      const histogram = histogramOf(sample);
      const exact = percentileOfSorted(Float64Array.from(sample).sort(), share);
      expect(Math.abs(histogram.percentileNs(share) - exact)).toBeLessThanOrEqual(HISTOGRAM_RELATIVE_ERROR * exact + 1);
      let sum = 0;
      for (const value of sample) sum += value;
      expect(histogram.meanNs()).toBeCloseTo(sum / sample.length, 4);
    }),
  );
});

it("counts a progression as if each of its durations had been added", () => {
  const progression = fc.record({
    firstPs: fc.integer({ min: 0, max: 50_000_000_000 }),
    growthPs: fc.integer({ min: -20_000, max: 5_000_000 }),
    count: fc.integer({ min: 1, max: 400 }),
  });
  fc.assert(
    fc.property(progression, ({ firstPs, growthPs, count }) => {
      fc.pre(firstPs + growthPs * (count - 1) >= 0);
      const whole = new DurationHistogram();
      whole.addProgression(firstPs, growthPs, count);
      const single = new DurationHistogram();
      for (let i = 0; i < count; i++) single.addProgression(firstPs + growthPs * i, 0, 1);
      const listed = new DurationHistogram();
      for (let i = 0; i < count; i++) listed.add(Math.floor((firstPs + growthPs * i) / 1000));
      expect(whole.toGapCounts()).toEqual(single.toGapCounts());
      expect(whole.toGapCounts().bucketCounts).toEqual(listed.toGapCounts().bucketCounts);
    }),
  );
});

it("merges into exactly the pooled histogram, also by way of a file", () => {
  fc.assert(
    fc.property(fc.array(fc.array(fc.integer({ min: 0, max: 10_000_000_000 }))), (parts) => {
      const merged = new DurationHistogram();
      const read = new DurationHistogram();
      for (const part of parts) {
        merged.merge(histogramOf(part));
        read.addGapCounts(histogramOf(part).toGapCounts());
      }
      const pooled = histogramOf(parts.flat());
      expect(merged.toGapCounts()).toEqual(pooled.toGapCounts());
      expect(read.toGapCounts()).toEqual(pooled.toGapCounts());
      expect(merged.summary(1)).toEqual(pooled.summary(1));
    }),
    { numRuns: 30 },
  );
});

it("does not depend on the order even where the sum is beyond what a number holds exactly", () => {
  const values = [2 ** 52 + 1, 1, 2 ** 52 + 3, 5, 2 ** 52 + 7];
  expect(histogramOf(values).meanNs()).toBe(histogramOf(values.toReversed()).meanNs());
});

it("is empty again after clear", () => {
  const histogram = histogramOf([1, 50_000, 3_000_000_000]);
  histogram.clear();
  histogram.add(7);
  expect(histogram.toGapCounts()).toEqual({ bucketCounts: [7, 1], sumNs: 7, minNs: 7, maxNs: 7 });
});
