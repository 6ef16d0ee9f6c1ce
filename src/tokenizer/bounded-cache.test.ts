import { describe, expect, test } from "vitest";
import { BoundedCache } from "./bounded-cache.ts";

describe("a bounded cache", () => {
  test("forgets what was not used for long, and keeps what was", () => {
    const cache = new BoundedCache<number>(40);
    cache.set("used passage", 1);
    cache.set("stale one", 2);
    for (let i = 0; i < 10; i++) {
      cache.set(`passage ${i}`, i);
      expect(cache.get("used passage")).toBe(1);
    }
    expect(cache.get("stale one")).toBeUndefined();
  });

  test("does not take what would fill it alone", () => {
    const cache = new BoundedCache<number>(40);
    cache.set("a", 1);
    cache.set("x".repeat(30), 2);
    cache.set("short", 3, 30);
    expect([cache.get("x".repeat(30)), cache.get("short"), cache.get("a")]).toEqual([undefined, undefined, 1]);
  });
});
