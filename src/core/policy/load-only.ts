/**
 * Load only: `kv-cost` with the cache credit at 0, by the same code. The ablation arm: what it gains over round-robin is
 * due to watching load, and only the rest of kv-cost's gain is due to the cache. On Dynamo's own sweep (8 × TP4 B200,
 * simulated) that was 81 % of the TTFT gain.
 *
 * In the mission form the prefill term is the same for everybody, so the fewest active blocks win. In the dynamo form it
 * is what Dynamo v1.4 calls --load-aware: no credit from any tier, and no assumption that blocks are shared with active
 * requests, which would bring some affinity back in.
 *
 * Weakness: by design blind to the cache; otherwise that of kv-cost.
 */
import { CostPolicy } from "./cost-policy.ts";
import { kvCostRule, LOAD_PARAMETERS } from "./kv-cost.ts";
import { resolveParameters } from "./parameters.ts";
import type { Policy, PolicyDefinition, PolicyParameters } from "./types.ts";

/** `kv-cost` that ignores the cache. */
export const loadOnly: PolicyDefinition = {
  name: "load-only",
  about: "kv-cost with the cache credit at 0: the ablation arm.",
  parameters: LOAD_PARAMETERS,
  create(parameters: PolicyParameters): Policy {
    const resolved = resolveParameters(loadOnly.name, loadOnly.parameters, parameters);
    return new CostPolicy(loadOnly.name, resolved, kvCostRule(loadOnly, resolved, false));
  },
};
