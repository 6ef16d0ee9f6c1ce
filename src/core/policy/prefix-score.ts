/**
 * Prefix score: weighted scorers in the manner of the llm-d router (v0.10, which took over the endpoint picker of the
 * Gateway API Inference Extension). Each scorer gives every candidate a number in [0, 1], 1 being best; the weighted
 * sum decides. The usual weights are prefix 2, queue 1, KV 1. Here cost = Σ weight × (1 − score), so lower is better.
 *
 *  - prefix: cached blocks / prompt blocks;
 *  - queue: (max − waiting) / (max − min) over the candidates, 1 for all where they are equal. llm-d scrapes the
 *    engine's waiting queue; the router's own, fresher figure is requests placed and without a first token;
 *  - KV: 1 − active blocks / pool. A replica whose pool is unknown is taken to be as full as the known ones on average,
 *    so that not knowing is neither an advantage nor a penalty; if no pool is known the scorer is silent.
 *
 * llm-d shuffles equal scores; here they rotate.
 *
 * Weakness: min-max stretches a queue difference of one request to the full scale and hides one of a hundred behind the
 * same scale; the KV scorer hardly moves on large pools, so a hot prefix can hold 2 of 8 replicas (llm-d issue 355).
 */
import { CostPolicy, type CostRule } from "./cost-policy.ts";
import { numberParameter, resolveParameters } from "./parameters.ts";
import type { CandidateView, CostTerm, ParameterSpec, Policy, PolicyDefinition, PolicyParameters } from "./types.ts";

class PrefixScoreRule implements CostRule {
  readonly usesActivePrefix = false;
  readonly tieBreak = "rotation";
  readonly #prefixWeight: number;
  readonly #queueWeight: number;
  readonly #kvWeight: number;
  #shortestQueue = 0;
  #queueRange = 0;
  #meanKvUse = 0;

  constructor(parameters: PolicyParameters) {
    this.#prefixWeight = numberParameter(parameters, "prefix_weight");
    this.#queueWeight = numberParameter(parameters, "queue_weight");
    this.#kvWeight = numberParameter(parameters, "kv_weight");
  }

  price(view: CandidateView, costs: Float64Array): void {
    const { count, candidates } = view;
    const { inFlight, decoding, activeBlocks, kvBlocks } = view.load;
    let shortest = Infinity;
    let longest = 0;
    let knownBlocks = 0;
    let usedBlocks = 0;
    for (let i = 0; i < count; i++) {
      const replica = candidates[i];
      const waiting = inFlight[replica] - decoding[replica];
      if (waiting < shortest) shortest = waiting;
      if (waiting > longest) longest = waiting;
      if (kvBlocks[replica] > 0) {
        // Whole numbers, so that the sum does not depend on the order of replicas.
        knownBlocks += kvBlocks[replica];
        usedBlocks += Math.min(activeBlocks[replica], kvBlocks[replica]);
      }
    }
    this.#shortestQueue = shortest;
    this.#queueRange = longest - shortest;
    this.#meanKvUse = knownBlocks > 0 ? usedBlocks / knownBlocks : 0;
    for (let i = 0; i < count; i++) {
      const replica = candidates[i];
      costs[i] = this.#prefixCost(view, replica) + this.#queueCost(view, replica) + this.#kvCost(view, replica);
    }
  }

  describe(): string {
    return `${this.#prefixWeight} × (1 − prefix score) + ${this.#queueWeight} × (1 − queue score) + ${this.#kvWeight} × (1 − KV score)`;
  }

  unit(): string {
    return "weighted score";
  }

  terms(view: CandidateView, replica: number): CostTerm[] {
    return [
      { name: "prefix", value: this.#prefixCost(view, replica) },
      { name: "queue", value: this.#queueCost(view, replica) },
      { name: "KV use", value: this.#kvCost(view, replica) },
    ];
  }

  #prefixCost(view: CandidateView, replica: number): number {
    // A prompt without a full block matches nothing anywhere: the same cost for everybody.
    if (view.promptBlocks === 0) return this.#prefixWeight;
    const uncached = view.promptBlocks - view.cachedBlocks[replica];
    return uncached > 0 ? (this.#prefixWeight * uncached) / view.promptBlocks : 0;
  }

  #queueCost(view: CandidateView, replica: number): number {
    if (this.#queueRange <= 0) return 0;
    const waiting = view.load.inFlight[replica] - view.load.decoding[replica];
    return (this.#queueWeight * (waiting - this.#shortestQueue)) / this.#queueRange;
  }

  #kvCost(view: CandidateView, replica: number): number {
    return this.#kvWeight * kvUse(view, replica, this.#meanKvUse);
  }
}

/** Shared blocks count for each holder, so a sum above the pool is possible and means full. */
function kvUse(view: CandidateView, replica: number, unknown: number): number {
  const pool = view.load.kvBlocks[replica];
  if (pool <= 0) return unknown;
  const use = view.load.activeBlocks[replica] / pool;
  return use < 1 ? use : 1;
}

function weight(value: number, about: string): ParameterSpec {
  return { kind: "number", default: value, minimum: 0, maximum: 1000, about };
}

/** llm-d-style weighted scorers for prefix, queue and KV use. */
export const prefixScore: PolicyDefinition = {
  name: "prefix-score",
  about: "Weighted sum of prefix, queue and KV-use scores (llm-d, Gateway API Inference Extension).",
  parameters: {
    prefix_weight: weight(2, "Weight of the share of the prompt that is cached."),
    queue_weight: weight(1, "Weight of the requests without a first token, scaled between shortest and longest."),
    kv_weight: weight(1, "Weight of the share of the KV pool that is in use."),
  },
  create(parameters: PolicyParameters): Policy {
    const resolved = resolveParameters(prefixScore.name, prefixScore.parameters, parameters);
    return new CostPolicy(prefixScore.name, resolved, new PrefixScoreRule(resolved));
  },
};
