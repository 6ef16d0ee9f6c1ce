import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { keptDiscoveries } from "./false-discovery.ts";

describe("keptDiscoveries", () => {
  test("keeps the four of fifteen that Benjamini and Hochberg keep in their example", () => {
    const chances = [
      0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.324, 0.4262, 0.5719, 0.6528, 0.759, 1,
    ];
    const kept = keptDiscoveries(chances, 0.05);
    expect(kept).toEqual(chances.map((_, at) => at < 4));
  });

  test("keeps one above its own threshold where a later one passes", () => {
    expect(keptDiscoveries([0.03, 0.034, 0.5, 0.04], 0.06)).toEqual([true, true, false, true]);
  });

  test("keeps nothing of nothing, and nothing of many accidents", () => {
    expect(keptDiscoveries([], 0.05)).toEqual([]);
    expect(keptDiscoveries([0.04, 0.2, 0.6], 0.05)).toEqual([false, false, false]);
  });

  test("never keeps one and drops a less likely accident, in any order", () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 40 }), (chances) => {
        const kept = keptDiscoveries(chances, 0.1);
        const most = Math.max(-1, ...chances.filter((_, at) => kept[at]));
        expect(kept).toEqual(chances.map((chance) => chance <= most));
      }),
    );
  });
});
