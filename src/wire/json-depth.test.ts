import { expect, test } from "vitest";
import { isDeeperThan } from "./json-depth.ts";

test("lists and objects count as levels, and nothing else does", () => {
  expect(isDeeperThan(0, "text")).toBe(false);
  expect(isDeeperThan(0, null)).toBe(false);
  expect(isDeeperThan(0, [])).toBe(true);
  const value = { a: [1, null, { b: "c" }], d: "e" };
  expect(isDeeperThan(2, value)).toBe(true);
  expect(isDeeperThan(3, value)).toBe(false);
});

test("what is nested almost without end is found out without following it", () => {
  const levels = 1_000_000;
  expect(isDeeperThan(256, JSON.parse("[".repeat(levels) + "]".repeat(levels)))).toBe(true);
  expect(isDeeperThan(levels - 1, JSON.parse('{"a":'.repeat(levels) + "1" + "}".repeat(levels)))).toBe(true);
});
