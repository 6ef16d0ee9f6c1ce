/**
 * Power of two choices: draw two replicas at random, take the one with fewer requests in flight (Mitzenmacher 2001; a
 * mode of Dynamo v1.4, the SGLang gateway 0.3 and vLLM Router). Made for routers whose load figures are stale, where
 * always taking the least loaded makes all of them rush to the same worker.
 *
 * The two smallest draws are the two drawn, without replacement. In the explanation the others carry a `not drawn` term
 * of one more than the highest load among the candidates: what it takes to keep them behind both drawn ones.
 *
 * Weakness: where one router has exact load figures, as here, drawing can only do worse than looking at all of them; and
 * the cache is ignored.
 */
import { CostPolicy, type CostRule } from "./cost-policy.ts";
import { drawBits, drawSeed } from "./draw.ts";
import { resolveParameters } from "./parameters.ts";
import type { CandidateView, CostTerm, Policy, PolicyDefinition, PolicyParameters } from "./types.ts";

class PowerOfTwoRule implements CostRule {
  readonly usesActivePrefix = false;
  readonly tieBreak = "rotation";
  #first = -1;
  #second = -1;
  #notDrawn = 0;

  price(view: CandidateView, costs: Float64Array): void {
    const { count, candidates, key } = view;
    const { inFlight } = view.load;
    const seed = drawSeed(view.chance);
    let first = -1;
    let second = -1;
    let firstBits = Infinity;
    let secondBits = Infinity;
    let highest = 0;
    for (let i = 0; i < count; i++) {
      const replica = candidates[i];
      const bits = drawBits(seed, key[replica]);
      if (inFlight[replica] > highest) highest = inFlight[replica];
      if (bits < firstBits) {
        second = first;
        secondBits = firstBits;
        first = replica;
        firstBits = bits;
      } else if (bits < secondBits) {
        second = replica;
        secondBits = bits;
      }
    }
    this.#first = first;
    this.#second = second;
    this.#notDrawn = highest + 1;
    for (let i = 0; i < count; i++) {
      const replica = candidates[i];
      costs[i] = inFlight[replica] + this.#exclusion(replica);
    }
  }

  describe(): string {
    return "of two replicas drawn at random, the one with fewer requests in flight";
  }

  unit(): string {
    return "requests";
  }

  terms(view: CandidateView, replica: number): CostTerm[] {
    return [
      { name: "requests in flight", value: view.load.inFlight[replica] },
      { name: "not drawn", value: this.#exclusion(replica) },
    ];
  }

  #exclusion(replica: number): number {
    return replica === this.#first || replica === this.#second ? 0 : this.#notDrawn;
  }
}

/** The less loaded of two replicas drawn at random. */
export const powerOfTwo: PolicyDefinition = {
  name: "power-of-two",
  about: "Of two random replicas, the one with fewer requests in flight; ignores the cache.",
  parameters: {},
  create(parameters: PolicyParameters): Policy {
    const resolved = resolveParameters(powerOfTwo.name, powerOfTwo.parameters, parameters);
    return new CostPolicy(powerOfTwo.name, resolved, new PowerOfTwoRule());
  },
};
