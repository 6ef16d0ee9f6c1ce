/**
 * Least loaded: the replica with the fewest requests in flight, counted by the router itself. Dynamo v1.4 calls it
 * least-loaded (fewest active connections), generic proxies least-connections. Ties rotate. No constants.
 *
 * Weakness: a request counts as one whether it brings ten tokens or a hundred thousand, and the cache is ignored. It is
 * nevertheless hard to beat without shared prefixes; NVIDIA's own AICR validator prefers it (NVIDIA/aicr PR 1399).
 */
import { CostPolicy, type CostRule } from "./cost-policy.ts";
import { resolveParameters } from "./parameters.ts";
import type { CandidateView, CostTerm, Policy, PolicyDefinition, PolicyParameters } from "./types.ts";

class LeastLoadedRule implements CostRule {
  readonly usesActivePrefix = false;
  readonly tieBreak = "rotation";

  price(view: CandidateView, costs: Float64Array): void {
    const { count, candidates } = view;
    const { inFlight } = view.load;
    for (let i = 0; i < count; i++) costs[i] = inFlight[candidates[i]];
  }

  describe(): string {
    return "fewest requests in flight";
  }

  unit(): string {
    return "requests";
  }

  terms(view: CandidateView, replica: number): CostTerm[] {
    return [{ name: "requests in flight", value: view.load.inFlight[replica] }];
  }
}

/** The replica with the fewest requests in flight. */
export const leastLoaded: PolicyDefinition = {
  name: "least-loaded",
  about: "Fewest requests in flight; ignores the cache.",
  parameters: {},
  create(parameters: PolicyParameters): Policy {
    const resolved = resolveParameters(leastLoaded.name, leastLoaded.parameters, parameters);
    return new CostPolicy(leastLoaded.name, resolved, new LeastLoadedRule());
  },
};
