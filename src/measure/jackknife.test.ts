import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jackknifeError, meanWithout, percentileWithout } from "./jackknife.ts";
import { percentileOfSorted } from "./percentile.ts";

const PARTS = 4;
const requests = fc.array(
  fc.record({
    value: fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 0, max: 1000 }) }, fc.constant(Infinity)),
    part: fc.nat({ max: PARTS - 1 }),
  }),
  { minLength: 1, maxLength: 60 },
);

function parted(list: readonly { value: number; part: number }[]): Parameters<typeof meanWithout>[0] {
  return {
    values: Float64Array.from(list, ({ value }) => value),
    parts: Uint16Array.from(list, ({ part }) => part),
    partCount: PARTS,
  };
}

describe("leaving out parts", () => {
  test("gives what the statistic of the other parts alone is", () => {
    fc.assert(
      fc.property(requests, (list) => {
        const percentile = percentileWithout(parted(list), 0.95);
        const mean = meanWithout(parted(list));
        for (let part = -1; part < PARTS; part++) {
          const others = Float64Array.from(
            list.filter((one) => one.part !== part),
            ({ value }) => value,
          ).sort();
          const sum = others.reduce((total, value) => total + value, 0);
          expect(part < 0 ? percentile.all : percentile.without[part]).toBe(percentileOfSorted(others, 0.95));
          expect(part < 0 ? mean.all : mean.without[part]).toBe(sum / others.length);
        }
      }),
    );
  });
});

describe("jackknifeError", () => {
  test("is the standard error of a mean of equal parts", () => {
    const values = [3, 8, 1, 4];
    const without = values.map((value) => (16 - value) / 3);
    expect(jackknifeError(without, 1)).toBeCloseTo(Math.sqrt(26 / 3 / 4), 12);
  });

  test("is that of the runs where the parts of a run go together", () => {
    const values = [1, 1, 1, 5, 5, 5];
    const without = values.map((value) => (18 - value) / 5);
    expect(jackknifeError(without, 1)).toBeCloseTo(Math.sqrt(24 / 5 / 6), 12);
    // Two runs with means of 1 and 5: half the difference.
    expect(jackknifeError(without, 3)).toBeCloseTo(2, 12);
  });

  test("is unknown of one part, and where a part decides whether the measure was reached", () => {
    expect(jackknifeError([1], 1)).toBe(Infinity);
    expect(jackknifeError([1, Infinity], 1)).toBe(Infinity);
  });
});
