import { describe, expect, test } from "vitest";
import { Rng } from "../core/rng.ts";
import { PrefixGroups, type PrefixGroupParameters } from "./prefix-groups.ts";

const PARAMETERS: PrefixGroupParameters = {
  groups: 5,
  prefixTokens: [1000, 2000],
  skew: 1,
  suffixTokens: [10, 20],
  outputTokens: [30, 40],
};

describe("prefix groups", () => {
  test("share prefixes by popularity and nothing else", () => {
    const supply = new PrefixGroups(PARAMETERS, new Rng(1), 2000);
    const counts = new Map<number, number>();
    const own = new Set<number>();
    for (let at = 0; at < 2000; at++) {
      const { turns } = supply.session(at)!;
      const { prompt, outputTokens } = turns[0];
      if (prompt.kind !== "append") throw new Error("a prefix group appends");
      const [prefix, suffix] = prompt.segments;
      counts.set(prefix.id, (counts.get(prefix.id) ?? 0) + 1);
      own.add(suffix.id);
      expect(suffix.tokens).toBeGreaterThanOrEqual(10);
      expect(suffix.tokens).toBeLessThanOrEqual(20);
      expect(outputTokens).toBeGreaterThanOrEqual(30);
    }
    expect(supply.session(2000)).toBeUndefined();
    expect(own.size).toBe(2000);
    for (let group = 0; group < 5; group++) {
      // Weights 1, 1/2, 1/3, 1/4 and 1/5 add up to 137/60.
      const expected = (2000 * 60) / 137 / (group + 1);
      expect(Math.abs(counts.get(group)! - expected)).toBeLessThan(4 * Math.sqrt(expected));
    }
  });

  test("come in runs of one group where they are told to, each request still its own", () => {
    const supply = new PrefixGroups({ ...PARAMETERS, groupRun: 8 }, new Rng(1), 800);
    const groups = Array.from({ length: 800 }, (_, at) => supply.session(at)?.name);
    for (let run = 0; run < 100; run++) expect(new Set(groups.slice(8 * run, 8 * run + 8)).size).toBe(1);
    expect(new Set(groups).size).toBe(5);
    const suffixes = Array.from({ length: 8 }, (_, at) => supply.session(at)?.turns[0].outputTokens);
    expect(new Set(suffixes).size).toBeGreaterThan(1);
  });

  test.each([
    [{ groupRun: 0 }, "groupRun must be a whole number, 1 or more, got 0"],
    [{ groups: 0 }, "groups must be a whole number, 1 or more, got 0"],
    [{ skew: NaN }, "skew must be 0 or more, got null"],
    [{ suffixTokens: [3, 2] }, "suffixTokens must be two whole numbers, the lower first, got [3,2]"],
    [{ outputTokens: [0, 2] }, "outputTokens must begin at 1 or more, got [0,2]"],
  ] as [Partial<PrefixGroupParameters>, string][])("refuse %j", (change, message) => {
    expect(() => new PrefixGroups({ ...PARAMETERS, ...change }, new Rng(1))).toThrow(message);
  });
});
