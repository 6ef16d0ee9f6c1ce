import { lowestCost, NO_CANDIDATE, type TieBreak } from "./lowest-cost.ts";
import type { CandidateView, Choice, CostTerm, Explanation, Policy, PolicyParameters } from "./types.ts";

/**
 * What makes one policy differ from another: how it prices candidates. A rule prices all of them in one call, so that
 * its inner loop stays its own and is not slowed down by the other rules.
 */
export interface CostRule {
  readonly usesActivePrefix: boolean;
  readonly tieBreak: TieBreak;
  /**
   * Writes the cost of `view.candidates[i]` to `costs[i]`; may remember sums over the candidates for the calls below.
   * Unless `exact`, a lower bound will do for a candidate that cannot be among the two cheapest.
   */
  price(view: CandidateView, costs: Float64Array, exact: boolean): void;
  /** The rule in one line, for the view priced last. */
  describe(view: CandidateView): string;
  /** What the costs of the view priced last are counted in. */
  unit(): string;
  /** The candidate's cost taken apart, for the view priced last. */
  terms(view: CandidateView, replica: number): CostTerm[];
}

/** A policy that takes the candidate its rule prices lowest, and learns nothing. */
export class CostPolicy implements Policy {
  readonly name: string;
  readonly parameters: PolicyParameters;
  readonly usesActivePrefix: boolean;
  readonly #rule: CostRule;
  #costs: Float64Array = new Float64Array(64);

  constructor(name: string, parameters: PolicyParameters, rule: CostRule) {
    this.name = name;
    this.parameters = parameters;
    this.usesActivePrefix = rule.usesActivePrefix;
    this.#rule = rule;
  }

  choose(view: CandidateView): Choice {
    if (view.count === 0) return NO_CANDIDATE;
    return lowestCost(view, this.#price(view, false), this.#rule.tieBreak);
  }

  explain(view: CandidateView): Explanation {
    const rule = this.#rule;
    const costs = this.#price(view, true);
    const candidates = Array.from(view.candidates.subarray(0, view.count), (replica, position) => ({
      replica,
      cost: costs[position],
      terms: rule.terms(view, replica),
    }));
    return { rule: rule.describe(view), unit: rule.unit(), candidates };
  }

  #price(view: CandidateView, exact: boolean): Float64Array {
    if (this.#costs.length < view.count) this.#costs = new Float64Array(2 * view.count);
    this.#rule.price(view, this.#costs, exact);
    return this.#costs;
  }
}
