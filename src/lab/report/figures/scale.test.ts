import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { linearScale, logScale, pointScale } from "./scale.ts";

describe("axes", () => {
  test("a linear one is widened to round numbers", () => {
    const { ticks, at } = linearScale(3, 97, 0, 100);
    expect(ticks).toEqual([0, 20, 40, 60, 80, 100]);
    expect([at(0), at(50), at(100)]).toEqual([0, 50, 100]);
    expect(linearScale(0, 0.3, 0, 100).ticks).toEqual([0, 0.1, 0.2, 0.3]);
  });

  test("a logarithmic one puts equal ratios equally far apart", () => {
    const { ticks, at } = logScale(12, 900, 0, 300);
    expect(ticks).toEqual([10, 20, 50, 100, 200, 500, 1000]);
    expect(at(100) - at(10)).toBeCloseTo(at(1000) - at(100));
  });

  test("levels that were tested are its only marks", () => {
    expect(pointScale([40, 120], 0, 100).at(80)).toBe(50);
    expect(pointScale([40], 0, 100).at(40)).toBe(50);
  });

  test("whatever is drawn lies on it, marks rise, and there are not too many", () => {
    const positive = fc.double({ min: 1e-3, max: 1e7, noNaN: true });
    fc.assert(
      fc.property(positive, positive, (a, b) => {
        const [low, high] = [Math.min(a, b), Math.max(a, b)];
        // Nobody could see less.
        fc.pre(high === low || high > 1.0001 * low);
        for (const scale of [linearScale(low, high, 0, 100), logScale(low, high, 0, 100)]) {
          for (const value of [low, high]) {
            expect(scale.at(value)).toBeGreaterThanOrEqual(-1e-6);
            expect(scale.at(value)).toBeLessThanOrEqual(100 + 1e-6);
          }
          expect(scale.ticks).toEqual([...scale.ticks].sort((x, y) => x - y));
          expect(new Set(scale.ticks).size).toBe(scale.ticks.length);
          expect(scale.ticks.length).toBeLessThan(30);
        }
      }),
    );
  });
});
