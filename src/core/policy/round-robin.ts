/**
 * Round-robin: every replica in turn. The baseline of the mission's studies and the default mode of Dynamo v1.4.
 *
 * The turn is not a counter over a list but "whoever waited longest", by the number of the decision that last chose the
 * replica. So the rotation goes on undisturbed when workers come, go, or are filtered out for one request, and does not
 * depend on how they are numbered. No constants.
 *
 * Weakness: sees neither cache nor load. Long requests pile up by chance, and each turn of a conversation lands on a
 * worker that has not seen the ones before.
 */
import { CostPolicy, type CostRule } from "./cost-policy.ts";
import { resolveParameters } from "./parameters.ts";
import type { CandidateView, CostTerm, Policy, PolicyDefinition, PolicyParameters } from "./types.ts";

class RoundRobinRule implements CostRule {
  readonly usesActivePrefix = false;
  readonly tieBreak = "rotation";

  price(view: CandidateView, costs: Float64Array): void {
    const { count, candidates, lastChosen } = view;
    for (let i = 0; i < count; i++) costs[i] = lastChosen[candidates[i]];
  }

  describe(): string {
    return "the replica whose last turn is longest ago";
  }

  unit(): string {
    return "decision number";
  }

  terms(view: CandidateView, replica: number): CostTerm[] {
    return [{ name: "last chosen", value: view.lastChosen[replica] }];
  }
}

/** Every replica in turn. */
export const roundRobin: PolicyDefinition = {
  name: "round-robin",
  about: "Every replica in turn; sees neither cache nor load.",
  parameters: {},
  create(parameters: PolicyParameters): Policy {
    const resolved = resolveParameters(roundRobin.name, roundRobin.parameters, parameters);
    return new CostPolicy(roundRobin.name, resolved, new RoundRobinRule());
  },
};
