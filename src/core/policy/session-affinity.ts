/**
 * Session affinity: consistent hashing with bounded loads. Every session has a fixed order of preference over replicas;
 * a request goes to the first one in it that has room, where room means that with this request the replica would hold at
 * most ceil(load_factor × (requests in flight + 1) / candidates). There is always one (load_factor ≥ 1).
 *
 * The rule is that of Mirrokni, Thorup and Zadimoghaddam (2016); the factor 1.25 is what KubeAI's CHWBL balancer and
 * the `prefix_hash` policy of the SMG gateway 1.9 use. Instead of a ring with virtual nodes the order comes from
 * rendezvous hashing on (session key, replica key): removing a worker moves only its own sessions, a new one takes an even
 * share from everybody, and neither the numbering of workers nor the history matters. Sessions are those the client
 * names; otherwise the prompt's first blocks stand for one.
 *
 * Weakness: the hash knows neither which prefixes are shared between sessions nor what is still cached, requests count as
 * one whatever their size, and with few requests in flight the bound is tight (a capacity of 1 until 0.8 requests per
 * replica), so that two hot sessions with one home part although there is room.
 */
import { CostPolicy, type CostRule } from "./cost-policy.ts";
import { drawSeed, drawUniform } from "./draw.ts";
import { numberParameter, resolveParameters } from "./parameters.ts";
import type { CandidateView, CostTerm, Policy, PolicyDefinition, PolicyParameters } from "./types.ts";

class SessionAffinityRule implements CostRule {
  readonly usesActivePrefix = false;
  readonly tieBreak = "rotation";
  readonly #loadFactor: number;
  #capacity = 0;

  constructor(loadFactor: number) {
    this.#loadFactor = loadFactor;
  }

  price(view: CandidateView, costs: Float64Array): void {
    const { count, candidates, key } = view;
    const { inFlight } = view.load;
    const seed = drawSeed(view.sessionKey);
    let total = 0;
    for (let i = 0; i < count; i++) total += inFlight[candidates[i]];
    this.#capacity = Math.ceil((this.#loadFactor * (total + 1)) / count);
    for (let i = 0; i < count; i++) {
      const replica = candidates[i];
      costs[i] = drawUniform(seed, key[replica]) + this.#excess(inFlight[replica]);
    }
  }

  describe(): string {
    return `nearest to the session by hash, among replicas with fewer than ${this.#capacity} requests (load_factor ${this.#loadFactor})`;
  }

  unit(): string {
    return "hash distance";
  }

  terms(view: CandidateView, replica: number): CostTerm[] {
    return [
      { name: "distance from session", value: drawUniform(drawSeed(view.sessionKey), view.key[replica]) },
      { name: "at load bound", value: this.#excess(view.load.inFlight[replica]) },
    ];
  }

  /** Distances are below 1, so 1 puts a full replica behind all that have room. */
  #excess(inFlight: number): number {
    return inFlight < this.#capacity ? 0 : 1;
  }
}

/** Consistent hashing of sessions with bounded load. */
export const sessionAffinity: PolicyDefinition = {
  name: "session-affinity",
  about: "Keeps a session on one replica by consistent hashing, unless it is above its share of the load.",
  parameters: {
    load_factor: {
      kind: "number",
      default: 1.25,
      minimum: 1,
      maximum: 1000,
      about: "How far above the mean number of requests in flight a replica may go before its sessions spill over.",
    },
  },
  create(parameters: PolicyParameters): Policy {
    const resolved = resolveParameters(sessionAffinity.name, sessionAffinity.parameters, parameters);
    return new CostPolicy(
      sessionAffinity.name,
      resolved,
      new SessionAffinityRule(numberParameter(resolved, "load_factor")),
    );
  },
};
