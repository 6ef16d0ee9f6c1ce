import fc from "fast-check";
import { expect, test } from "vitest";
import { placeLabels } from "./labels.ts";

const label = (wanted: number): { text: string; wanted: number; kind: string } => ({
  text: String(wanted),
  wanted,
  kind: "1",
});

test("labels that have room stay where they want to be", () => {
  expect(placeLabels([label(90), label(20)], 0, 100).map(({ y }) => y)).toEqual([20, 90]);
});

test("labels that would cover each other move apart, and stay on the figure", () => {
  expect(placeLabels([label(50), label(51), label(52)], 0, 100).map(({ y }) => y)).toEqual([50, 65, 80]);
  expect(placeLabels([label(98), label(99)], 0, 100).map(({ y }) => y)).toEqual([85, 100]);
});

test("none covers another as long as there is room for all", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 20 }), (wanted) => {
      const heights = placeLabels(wanted.map(label), 0, 300).map(({ y }) => y);
      for (const [at, y] of heights.entries()) {
        expect(y).toBeGreaterThanOrEqual(0);
        expect(y).toBeLessThanOrEqual(300);
        if (at > 0) expect(y - heights[at - 1]).toBeGreaterThanOrEqual(15);
      }
    }),
  );
});
