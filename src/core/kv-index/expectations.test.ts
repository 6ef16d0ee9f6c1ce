import { expect, test } from "vitest";
import { Expectations } from "./expectations.ts";

test("a fleet that joins one by one has its memory taken a few times, and room for what was asked for each time", () => {
  const most = 1_000_000;
  const expectations = new Expectations(1024, 4);
  const sizes = new Set<number>();
  for (let blocks = 4096; blocks <= most; blocks += 4096) {
    expectations.reserve(blocks, most);
    expect(expectations.free).toBe(blocks);
    sizes.add(expectations.bytes);
  }
  expect(sizes.size).toBeLessThan(20);
  expectations.reserve(most, most);
  expectations.reserve(10, most);
  expect(expectations.free).toBe(most);
});
