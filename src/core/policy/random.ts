/**
 * Random: every replica with equal probability. One of Dynamo v1.4's modes and the usual control in the literature
 * (power of two choices, LMetric).
 *
 * Each candidate draws 32 bits that hang on the decision's chance and the replica's key; the smallest draw wins, which is
 * uniform and does not depend on the numbering of workers. The cost of a candidate is its draw, and the margin the
 * distance between the two smallest: it says nothing of quality. No constants.
 *
 * Weakness: as blind as round-robin, and its load varies more: with n requests on m workers the spread grows as √(n/m).
 */
import { CostPolicy, type CostRule } from "./cost-policy.ts";
import { drawSeed, drawUniform } from "./draw.ts";
import { resolveParameters } from "./parameters.ts";
import type { CandidateView, CostTerm, Policy, PolicyDefinition, PolicyParameters } from "./types.ts";

class RandomRule implements CostRule {
  readonly usesActivePrefix = false;
  readonly tieBreak = "rotation";

  price(view: CandidateView, costs: Float64Array): void {
    const { count, candidates, key } = view;
    const seed = drawSeed(view.chance);
    for (let i = 0; i < count; i++) costs[i] = drawUniform(seed, key[candidates[i]]);
  }

  describe(): string {
    return "the smallest random draw";
  }

  unit(): string {
    return "draw";
  }

  terms(view: CandidateView, replica: number): CostTerm[] {
    return [{ name: "draw", value: drawUniform(drawSeed(view.chance), view.key[replica]) }];
  }
}

/** Every replica with equal probability. */
export const random: PolicyDefinition = {
  name: "random",
  about: "Any replica with equal probability; sees neither cache nor load.",
  parameters: {},
  create(parameters: PolicyParameters): Policy {
    const resolved = resolveParameters(random.name, random.parameters, parameters);
    return new CostPolicy(random.name, resolved, new RandomRule());
  },
};
