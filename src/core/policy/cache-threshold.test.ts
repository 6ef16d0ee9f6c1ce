import { describe, expect, it } from "vitest";
import { cacheThreshold } from "./cache-threshold.ts";
import { candidateView } from "./candidate-view.ts";

const policy = cacheThreshold.create({});

/** The warm replica with the match against a cold one. */
function chosen(warmInFlight: number, coldInFlight: number, cachedBlocks = 80): string {
  const rows = [
    { name: "warm", inFlight: warmInFlight, cachedBlocks },
    { name: "cold", inFlight: coldInFlight },
  ];
  const choice = policy.choose(candidateView({ promptBlocks: 100 }, rows));
  return choice.kind === "place" ? rows[choice.replica].name : choice.kind;
}

describe("cache-threshold", () => {
  it("stays with the match while either threshold of imbalance holds", () => {
    expect(chosen(64, 0)).toBe("warm");
    expect(chosen(195, 130)).toBe("warm");
  });

  it("goes to the least loaded when both thresholds are exceeded", () => {
    expect(chosen(65, 0)).toBe("cold");
    expect(chosen(196, 130)).toBe("cold");
  });

  it("follows a match only above its threshold", () => {
    expect(chosen(10, 9, 31)).toBe("warm");
    expect(chosen(10, 9, 30)).toBe("cold");
  });

  it("takes the longest match, then the fewest requests", () => {
    const view = candidateView({ promptBlocks: 100 }, [
      { name: "a", inFlight: 1, cachedBlocks: 60 },
      { name: "b", inFlight: 30, cachedBlocks: 61 },
      { name: "c", inFlight: 20, cachedBlocks: 61 },
    ]);
    expect(policy.choose(view)).toMatchObject({ replica: 2, runnerUp: 1 });
    expect(policy.explain(view)).toMatchObject({ unit: "blocks" });
  });
});
