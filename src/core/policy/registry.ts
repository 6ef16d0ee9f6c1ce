import { WarmpathError } from "../errors.ts";
import { cacheThreshold } from "./cache-threshold.ts";
import { kvCost } from "./kv-cost.ts";
import { leastLoaded } from "./least-loaded.ts";
import { loadOnly } from "./load-only.ts";
import { resolveParameters } from "./parameters.ts";
import { powerOfTwo } from "./power-of-two.ts";
import { prefixScore } from "./prefix-score.ts";
import { product } from "./product.ts";
import { random } from "./random.ts";
import { roundRobin } from "./round-robin.ts";
import { sessionAffinity } from "./session-affinity.ts";
import { warmpath } from "./warmpath.ts";
import type { Policy, PolicyDefinition } from "./types.ts";

/** All policies, baselines first; help, docs and the contract suite are made from this list. */
export const POLICIES: readonly PolicyDefinition[] = [
  roundRobin,
  random,
  leastLoaded,
  powerOfTwo,
  sessionAffinity,
  kvCost,
  loadOnly,
  cacheThreshold,
  product,
  prefixScore,
  warmpath,
];

/** Makes a policy by name; parameters come from users and files, so they are checked here and not trusted. */
export function createPolicy(name: string, parameters: Readonly<Record<string, unknown>> = {}): Policy {
  const definition = POLICIES.find((candidate) => candidate.name === name);
  if (definition === undefined) {
    const known = POLICIES.map((candidate) => candidate.name).join(", ");
    throw new WarmpathError("WP_UNKNOWN_POLICY", `unknown policy ${JSON.stringify(name)}; known: ${known}`);
  }
  return definition.create(resolveParameters(definition.name, definition.parameters, parameters));
}
