import { describe, expect, test } from "vitest";
import { difference, duration, formatCost, rate, seconds, share, short, tick, written } from "./format.ts";

describe("quantities", () => {
  test.each([
    [4.25, "4.3 ms"],
    [182.4, "182 ms"],
    [999.4, "999 ms"],
    [1308, "1.31 s"],
    [24_759, "24.8 s"],
  ])("a duration of %d ms is written with three digits at most: %s", (milliseconds, text) => {
    expect(written(duration(milliseconds))).toBe(text);
  });

  test("small shares keep the digits that make them differ from none", () => {
    expect([0, 0.004, 0.834, 1].map((value) => written(share(value)))).toEqual([
      "0.0 %",
      "0.40 %",
      "83.4 %",
      "100.0 %",
    ]);
  });

  test("rates have thousands, and no unit where there is little room", () => {
    expect([written(rate(2.638)), written(rate(2160.6)), short(rate(2160.6))]).toEqual(["2.64/s", "2,161/s", "2,161"]);
  });

  test("ticks are as short as they can be", () => {
    expect([
      tick(500, duration(500)),
      tick(2000, duration(2000)),
      tick(0.5, share(0.5)),
      tick(1500, rate(1500)),
    ]).toEqual(["500 ms", "2 s", "50 %", "1.5k"]);
  });

  test("costs have three digits, or none behind the point", () => {
    expect([formatCost(0.12345), formatCost(4192.4)]).toEqual(["0.123", "4,192"]);
  });

  test("times are rounded to what a reader can use", () => {
    expect([seconds(-3), seconds(43_400), seconds(150_000)]).toEqual(["0 s", "43 s", "3 min"]);
  });
});

describe("the difference to a baseline", () => {
  test.each([
    [300, 400, "−25 %"],
    [500, 400, "+25 %"],
    [400, 400, "±0 %"],
    [1700, 400, "× 4.3"],
    [6000, 400, "× 15"],
    [0, 0, "±0 %"],
    [5, 0, ""],
  ])("of %d to %d is %s", (live, baseline, text) => {
    expect(difference(live, baseline)).toBe(text);
  });
});
