import { describe, expect, test } from "vitest";
import { POLICIES } from "../../core/policy/registry.ts";
import { checkCacheStart, checkEvents, checkHits, checkWorkers, choosesByCache, restartedWorkers } from "./checks.ts";

const FACTS = { policy: "kv-cost", events: 10, requests: 50, promptTokens: 1000, cachedTokens: 500 };

describe("preflight", () => {
  test("fails an arm that chooses by caches and hears of none", () => {
    expect(checkEvents(FACTS).status).toBe("passed");
    expect(checkEvents({ ...FACTS, events: 0 })).toMatchObject({ status: "failed", code: "kv-events" });
    expect(checkEvents({ ...FACTS, events: 0, policy: "round-robin" }).status).toBe("passed");
    expect(checkEvents({ ...FACTS, events: undefined }).status).toBe("unavailable");
  });

  test("fails an arm that chooses by caches in which nothing is found", () => {
    expect(checkHits(FACTS).status).toBe("passed");
    expect(checkHits({ ...FACTS, cachedTokens: 0 }).status).toBe("failed");
    expect(checkHits({ ...FACTS, cachedTokens: 0, policy: "least-loaded" }).status).toBe("passed");
    expect(checkHits({ ...FACTS, cachedTokens: 0, requests: 3 }).status).toBe("unavailable");
    expect(checkHits({ ...FACTS, cachedTokens: undefined }).status).toBe("unavailable");
  });

  test("knows every policy that chooses by caches", () => {
    const blind = POLICIES.map(({ name }) => name).filter((name) => !choosesByCache(name));
    expect(blind).toEqual(["round-robin", "random", "least-loaded", "power-of-two", "session-affinity", "load-only"]);
  });

  test("wants as many workers as the level says, and no more", () => {
    expect(checkWorkers(3, 3).status).toBe("passed");
    expect([checkWorkers(2, 3).status, checkWorkers(4, 3).status]).toEqual(["failed", "failed"]);
    expect(checkWorkers(undefined, 3).status).toBe("unavailable");
  });

  test("says when nothing has brought caches into the state they should have", () => {
    expect(checkCacheStart("cold", "reset").status).toBe("passed");
    expect(checkCacheStart("cold", "nothing").status).toBe("failed");
  });

  test("names workers that went, came or began anew", () => {
    const before = new Map([
      ["a", "1"],
      ["b", "1"],
      ["c", "1"],
    ]);
    const after = new Map([
      ["a", "1"],
      ["b", "2"],
      ["d", "1"],
    ]);
    expect(restartedWorkers(before, after)).toEqual(["worker b began anew", "worker c is gone", "worker d came"]);
    expect(restartedWorkers(before, before)).toEqual([]);
    expect(restartedWorkers(undefined, after)).toEqual([]);
  });
});
