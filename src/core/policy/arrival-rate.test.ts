import { describe, expect, it } from "vitest";
import { ArrivalRate } from "./arrival-rate.ts";

const SECOND_NS = 1e9;

function everySecond(seconds: number, atOnce = 1): ArrivalRate {
  const rate = new ArrivalRate();
  for (let second = 0; second <= seconds; second++) {
    for (let i = 0; i < atOnce; i++) rate.arrived(second * SECOND_NS);
  }
  return rate;
}

describe("ArrivalRate", () => {
  it("is 0 before anything came", () => {
    expect(new ArrivalRate().at(SECOND_NS)).toBe(0);
  });

  it("is found after seconds as well as after minutes", () => {
    for (const seconds of [5, 30, 300]) {
      const perSecond = everySecond(seconds, 4).at(seconds * SECOND_NS) * SECOND_NS;
      expect(perSecond).toBeGreaterThan(3.8);
      expect(perSecond).toBeLessThan(4.2);
    }
  });

  it("falls while nothing comes", () => {
    const rate = everySecond(60);
    expect(rate.at(120 * SECOND_NS)).toBeLessThan(rate.at(60 * SECOND_NS) / 4);
  });
});
