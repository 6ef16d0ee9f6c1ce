import { describe, expect, it } from "vitest";
import { fitWithinBounds } from "./bounded-fit.ts";

describe("fitWithinBounds", () => {
  const bounds = [
    { name: "x", low: 0, high: 10 },
    { name: "y", low: 0, high: 1 },
  ] as const;

  it("finds a minimum inside the bounds", () => {
    const found = fitWithinBounds({ x: 9, y: 0.9, z: 5 }, bounds, ({ x, y }) => Math.abs(x - 3) + Math.abs(y - 0.25));
    expect(found.values.x).toBeCloseTo(3, 1);
    expect(found.values.y).toBeCloseTo(0.25, 1);
    expect(found.values.z).toBe(5);
    expect(found.lossAfter).toBeLessThan(found.lossBefore);
  });

  it("stops at a bound when the loss pulls beyond it, and clamps a start outside", () => {
    const found = fitWithinBounds({ x: 50, y: 0.5 }, bounds, ({ x }) => -x);
    expect(found.values.x).toBe(10);
  });
});
