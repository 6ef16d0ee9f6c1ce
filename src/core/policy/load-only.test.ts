import { describe, expect, it } from "vitest";
import { candidateView } from "./candidate-view.ts";
import { loadOnly } from "./load-only.ts";

const COLD = [
  { name: "a", activeBlocks: 30, pendingPrefillTokens: 64 },
  { name: "b", activeBlocks: 20, pendingPrefillTokens: 640 },
];
const CACHED = { cachedBlocks: 5, hostBlocks: 3, diskBlocks: 2, activePrefixBlocks: 4 };
const WARM = COLD.map((row) => Object.assign({}, row, CACHED));

describe("load-only", () => {
  it.each(["mission", "dynamo"])("gives the same costs in the %s form whatever is cached", (form) => {
    const policy = loadOnly.create({ form });
    const cold = policy.explain(candidateView({ promptBlocks: 10 }, COLD)).candidates.map(({ cost }) => cost);
    const warm = policy.explain(candidateView({ promptBlocks: 10 }, WARM)).candidates.map(({ cost }) => cost);
    expect(warm).toEqual(cold);
    expect(cold).toEqual(form === "mission" ? [40, 30] : [1 + 10 + 30 + 10, 10 + 10 + 20 + 10]);
    expect(policy.usesActivePrefix).toBe(false);
  });

  it("has no knobs for cache credit", () => {
    expect(() => loadOnly.create({ overlap_score_credit: 1 })).toThrow(/overlap_score_credit is not a parameter/);
  });
});
