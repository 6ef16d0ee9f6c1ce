import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Rng } from "../core/rng.ts";
import { type ArrivalProcess, arrivalTimes } from "./arrivals.ts";

function times(process: ArrivalProcess, count: number, seed = 1): number[] {
  const next = arrivalTimes(process, new Rng(seed));
  return Array.from({ length: count }, next);
}

/** Variance of the gaps in units of the squared mean: 1 for Poisson, 0 for constant, 1 / shape for gamma. */
function gapVariation(arrivals: readonly number[]): number {
  const gaps = arrivals.slice(1).map((time, at) => time - arrivals[at]);
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  return gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length / mean ** 2;
}

const PROCESSES: readonly [process: ArrivalProcess, variation: number][] = [
  [{ kind: "poisson", rateRps: 4 }, 1],
  [{ kind: "constant", rateRps: 4 }, 0],
  [{ kind: "gamma", rateRps: 4, shape: 0.25 }, 4],
  [{ kind: "gamma", rateRps: 4, shape: 5 }, 0.2],
  [{ kind: "burst", rateRps: 4, burstSize: 10 }, 9],
];

describe("arrivals", () => {
  test.each(PROCESSES)("of %j have the mean rate and the spread they should", (process, variation) => {
    const arrivals = times(process, 40_001);
    expect(Math.abs(40_000 / (arrivals[40_000] / 1e9) / 4 - 1)).toBeLessThan(0.03);
    expect(gapVariation(arrivals)).toBeGreaterThan(0.9 * variation - 0.001);
    expect(gapVariation(arrivals)).toBeLessThan(1.1 * variation + 0.001);
  });

  test("never go back in time, and are the same for the same seed", () => {
    fc.assert(
      fc.property(fc.constantFrom(...PROCESSES), fc.nat(), ([process], seed) => {
        const arrivals = times(process, 200, seed);
        expect(arrivals).toEqual(times(process, 200, seed));
        expect(arrivals).toEqual(arrivals.toSorted((a, b) => a - b));
        expect(arrivals.every(Number.isInteger)).toBe(true);
      }),
    );
  });

  test("of a burst come at once", () => {
    expect(times({ kind: "burst", rateRps: 2, burstSize: 3 }, 7)).toEqual([0, 0, 0, 1.5e9, 1.5e9, 1.5e9, 3e9]);
  });

  test.each([
    [{ kind: "poisson", rateRps: 0 }, "rateRps must be more than 0, got 0"],
    [{ kind: "gamma", rateRps: 1, shape: -1 }, "shape must be more than 0, got -1"],
    [{ kind: "burst", rateRps: 1, burstSize: 1.5 }, "burstSize must be a whole number, 1 or more, got 1.5"],
  ] as const)("refuse %j", (process, message) => {
    expect(() => arrivalTimes(process, new Rng(1))).toThrow(message);
  });
});
