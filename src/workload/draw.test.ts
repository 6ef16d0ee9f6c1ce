import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Rng } from "../core/rng.ts";
import { drawBetween, drawTokens, spreadOver, ZipfChoice } from "./draw.ts";

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

describe("draws", () => {
  test("between two ends reach both and nothing else", () => {
    const rng = new Rng(1);
    expect(new Set(Array.from({ length: 500 }, () => drawBetween(rng, [3, 6])))).toEqual(new Set([3, 4, 5, 6]));
  });

  test("of token counts have their mean and variation, and keep their bounds", () => {
    const rng = new Rng(2);
    const tokens = Array.from({ length: 20_000 }, () => drawTokens(rng, 830, 0.25, 2048));
    expect(Math.abs(mean(tokens) / 830 - 1)).toBeLessThan(0.01);
    const variation = Math.sqrt(mean(tokens.map((value) => (value - mean(tokens)) ** 2))) / mean(tokens);
    expect(Math.abs(variation - 0.25)).toBeLessThan(0.01);
    expect(drawTokens(rng, 50, 0, 2048)).toBe(50);
    expect(Math.max(...Array.from({ length: 1000 }, () => drawTokens(rng, 100, 2, 300)))).toBe(300);
    expect(Math.min(...Array.from({ length: 1000 }, () => drawTokens(rng, 2, 2, 300)))).toBe(1);
  });

  test("spread over a range have its middle as their mean, whatever the seed", () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 50 }), (seed, count) => {
        const values = spreadOver(new Rng(seed), count, [3500, 4000]);
        expect(Math.abs(mean(values) - 3750)).toBeLessThanOrEqual(0.5);
        expect(values.every((value) => value >= 3500 && value <= 4000)).toBe(true);
      }),
    );
  });

  test("by Zipf's law follow the weights", () => {
    const rng = new Rng(3);
    const counts = [0, 0, 0, 0];
    const choice = new ZipfChoice(4, 1);
    for (let at = 0; at < 25_000; at++) counts[choice.draw(rng)]++;
    expect(counts.map((count) => Math.round(count / 1000))).toEqual([12, 6, 4, 3]);
    const even = new ZipfChoice(4, 0);
    expect(new Set(Array.from({ length: 200 }, () => even.draw(rng))).size).toBe(4);
  });
});
