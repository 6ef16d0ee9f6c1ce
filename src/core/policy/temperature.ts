import type { CostRule } from "./cost-policy.ts";
import { drawBits, drawSeed } from "./draw.ts";
import type { CandidateView, CostTerm } from "./types.ts";
import { unitInterval } from "../rng.ts";

/**
 * Adds a softmax temperature to a rule: candidates are chosen with probability proportional to exp(-cost / (range × T)),
 * where the range is the highest cost minus the lowest, so that T means the same at every load (Dynamo's normalisation;
 * facts of ai-dynamo/dynamo after v1.4.1). Equal costs give a uniform choice.
 *
 * The sample is exact, by the Gumbel-max trick: each candidate's cost is lowered by range × T × a Gumbel-distributed
 * draw, and the lowest sum wins. So the draw is one more term of the cost, the explanation still adds up, and the margin
 * is the one between perturbed costs: how far the draws were from another outcome.
 */
export class TemperatureRule implements CostRule {
  readonly usesActivePrefix: boolean;
  readonly tieBreak = "draw";
  readonly #rule: CostRule;
  readonly #temperature: number;
  #scale = 0;

  constructor(rule: CostRule, temperature: number) {
    this.usesActivePrefix = rule.usesActivePrefix;
    this.#rule = rule;
    this.#temperature = temperature;
  }

  price(view: CandidateView, costs: Float64Array, exact: boolean): void {
    const { count, candidates, key } = view;
    this.#rule.price(view, costs, true);
    let lowest = Infinity;
    let highest = -Infinity;
    for (let i = 0; i < count; i++) {
      const cost = costs[i];
      if (cost < lowest) lowest = cost;
      if (cost > highest) highest = cost;
    }
    const scale = this.#temperature * (highest > lowest ? highest - lowest : 1);
    this.#scale = scale;
    const seed = drawSeed(view.chance);
    let best = Infinity;
    let second = Infinity;
    for (let i = 0; i < count; i++) {
      const bits = drawBits(seed, key[candidates[i]]);
      const bound = costs[i] - scale * mostGumbel(bits);
      // Two logarithms for each candidate would cost more than all the rest; few draws are large enough to need them.
      if (bound > second && !exact) {
        costs[i] = bound;
        continue;
      }
      const cost = costs[i] - scale * gumbel(bits);
      costs[i] = cost;
      if (cost < best) {
        second = best;
        best = cost;
      } else if (cost < second) {
        second = cost;
      }
    }
  }

  describe(view: CandidateView): string {
    return `${this.#rule.describe(view)}, sampled by softmax at temperature ${this.#temperature} of the range`;
  }

  unit(): string {
    return this.#rule.unit();
  }

  terms(view: CandidateView, replica: number): CostTerm[] {
    const bits = drawBits(drawSeed(view.chance), view.key[replica]);
    const draw: CostTerm = { name: "temperature draw", value: -this.#scale * gumbel(bits) };
    return [...this.#rule.terms(view, replica), draw];
  }
}

/** Standard Gumbel variate; the smallest draw gives the largest one, so "smallest draw wins" holds here too. */
function gumbel(bits: number): number {
  return -Math.log(-Math.log(1 - unitInterval(bits)));
}

/** At least `gumbel(bits)`: -ln(1 - u) is above u, and u is at least two to the power of minus one minus its leading zeros. */
function mostGumbel(bits: number): number {
  return (Math.clz32(bits) + 1) * Math.LN2;
}
