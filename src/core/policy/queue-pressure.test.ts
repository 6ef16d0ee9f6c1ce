import { describe, expect, test } from "vitest";
import { QueuePressure } from "./queue-pressure.ts";

const SECOND_NS = 1e9;

describe("the pressure of a queue", () => {
  test("is what waits before anything was decided", () => {
    expect(new QueuePressure(2 * SECOND_NS).at(0, 3)).toBe(3);
  });

  test("does not rise within a burst, however long it is", () => {
    const pressure = new QueuePressure(2 * SECOND_NS);
    for (let waiting = 0; waiting < 8; waiting++) {
      expect(pressure.at(SECOND_NS, waiting)).toBe(0);
      pressure.decided(SECOND_NS, 0, waiting + 1);
    }
  });

  test("comes near to a queue that lasts, and leaves it as slowly", () => {
    const pressure = new QueuePressure(2 * SECOND_NS);
    pressure.decided(0, 0, 4);
    const seen: number[] = [];
    for (let second = 1; second <= 20; second++) {
      const waiting = second <= 10 ? 4 : 0;
      seen.push(pressure.at(second * SECOND_NS, waiting));
      pressure.decided(second * SECOND_NS, seen[second - 1], waiting);
    }
    expect(seen[0]).toBeCloseTo(4 * (1 - Math.exp(-0.5)));
    expect(seen[9]).toBeGreaterThan(3.9);
    expect(seen[10]).toBeGreaterThan(3);
    expect(seen[19]).toBeLessThan(0.1);
    expect(seen.slice(0, 10)).toEqual(seen.slice(0, 10).sort((a, b) => a - b));
  });
});
