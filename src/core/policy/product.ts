/**
 * Product: (prefill tokens waiting + the request's uncached tokens) × batch size, lowest wins. The LMetric rule (OSDI
 * 2026, arXiv 2603.15202): the first factor is what the request waits for before its first token, the second what
 * every later token pays for; multiplying instead of adding makes weights and units cancel, so there is nothing to tune.
 * Our own check of peers found it the strongest rule without knobs.
 *
 * The batch size is the router's count of requests in flight with this request included (inFlight + 1): an idle replica
 * would otherwise cost 0 however much it has to compute. Uncached tokens are promptTokens − cachedBlocks × blockTokens.
 *
 * Weakness: where a replica has the whole prompt and nothing waiting, the product is 0 and its batch no longer
 * counts; slots and memory are not modelled, so above saturation it keeps feeding replicas that only queue.
 */
import { CostPolicy, type CostRule } from "./cost-policy.ts";
import { resolveParameters } from "./parameters.ts";
import type { CandidateView, CostTerm, Policy, PolicyDefinition, PolicyParameters } from "./types.ts";

class ProductRule implements CostRule {
  readonly usesActivePrefix = false;
  readonly tieBreak = "rotation";

  price(view: CandidateView, costs: Float64Array): void {
    const { count, candidates } = view;
    const { inFlight, pendingPrefillTokens } = view.load;
    for (let i = 0; i < count; i++) {
      const replica = candidates[i];
      costs[i] = (pendingPrefillTokens[replica] + uncachedTokens(view, replica)) * (inFlight[replica] + 1);
    }
  }

  describe(): string {
    return "(pending prefill tokens + uncached prompt tokens) × (requests in flight + 1)";
  }

  unit(): string {
    return "tokens × requests";
  }

  terms(view: CandidateView, replica: number): CostTerm[] {
    const batch = view.load.inFlight[replica] + 1;
    return [
      { name: "pending prefill × batch", value: view.load.pendingPrefillTokens[replica] * batch },
      { name: "uncached prompt × batch", value: uncachedTokens(view, replica) * batch },
    ];
  }
}

function uncachedTokens(view: CandidateView, replica: number): number {
  const uncached = view.promptTokens - view.cachedBlocks[replica] * view.blockTokens;
  return uncached > 0 ? uncached : 0;
}

/** LMetric: prefill work times batch size. */
export const product: PolicyDefinition = {
  name: "product",
  about: "Prefill tokens to wait for times batch size (LMetric); the strongest rule without knobs.",
  parameters: {},
  create(parameters: PolicyParameters): Policy {
    const resolved = resolveParameters(product.name, product.parameters, parameters);
    return new CostPolicy(product.name, resolved, new ProductRule());
  },
};
