import { candidateView } from "../../../core/policy/candidate-view.ts";
import type { CostTerm, Policy, PolicyParameters } from "../../../core/policy/types.ts";
import type { DecisionRecord } from "../../../core/record/decision-record.ts";
import { explainRecord } from "../../../core/record/explain-record.ts";
import type { CandidateInput, DecisionInput, RequestInput } from "./input.ts";

/** A decision taken apart, as `--json` prints it. */
export interface DecisionExplanation {
  readonly policy: string;
  readonly parameters: PolicyParameters;
  readonly rule: string;
  readonly unit: string;
  readonly request: RequestInput;
  /** Name of the chosen worker; null where the policy placed the request nowhere. */
  readonly chosen: string | null;
  readonly runnerUp: string | null;
  /** How much more the runner-up would have cost; null where nothing was chosen. */
  readonly margin: number | null;
  /** How many candidates had the lowest cost. */
  readonly tied: number;
  readonly candidates: readonly ExplainedCandidate[];
}

export interface ExplainedCandidate extends CandidateInput {
  /** Prompt blocks that are not cached and must be computed. */
  readonly prefillBlocks: number;
  readonly cost: number;
  readonly terms: readonly CostTerm[];
}

/** Lets the policy choose among the candidates and takes its costs apart. */
export function explainDecision(policy: Policy, input: DecisionInput): DecisionExplanation {
  const view = candidateView(
    { ...input.request, chance: input.chance },
    input.candidates.map(({ worker, decodeBlocks, ...known }) => ({
      name: worker,
      activeBlocks: decodeBlocks,
      ...known,
    })),
  );
  const choice = policy.choose(view);
  const { rule, unit, candidates } = policy.explain(view);
  const costs = new Map(candidates.map((candidate) => [candidate.replica, candidate]));
  const nameOf = (replica: number): string | null => input.candidates[replica]?.worker ?? null;
  const placed = choice.kind === "place";
  return {
    policy: policy.name,
    parameters: policy.parameters,
    rule,
    unit,
    request: input.request,
    chosen: placed ? nameOf(choice.replica) : null,
    runnerUp: placed ? nameOf(choice.runnerUp) : null,
    margin: placed ? choice.margin : null,
    tied: placed ? choice.tied : 0,
    candidates: input.candidates.map((candidate, replica) => {
      const { worker, cachedBlocks, decodeBlocks, ...known } = candidate;
      const explained = costs.get(replica);
      return {
        worker,
        cachedBlocks,
        prefillBlocks: input.request.promptBlocks - cachedBlocks,
        decodeBlocks,
        ...known,
        cost: explained?.cost ?? Infinity,
        terms: explained?.terms ?? [],
      };
    }),
  };
}

/** A decision that was made, by the costs that it was made by. */
export function explainRecorded(record: DecisionRecord): DecisionExplanation {
  const { explanation, policy, parameters, chosen, runnerUp, margin, tied } = explainRecord(record);
  const { request, candidates } = decisionInput(record);
  return {
    policy,
    parameters,
    rule: explanation?.rule ?? "",
    unit: explanation?.unit ?? "",
    request,
    chosen,
    runnerUp,
    margin: chosen === null ? null : margin,
    tied,
    candidates: candidates.map((candidate, at) => {
      const { cost = Infinity, terms = [] } = explanation?.candidates[at] ?? {};
      const prefillBlocks = request.promptBlocks - candidate.cachedBlocks;
      return { ...candidate, prefillBlocks, cost, terms };
    }),
  };
}

/** What was known when a decision was made, for another policy to decide. */
export function decisionInput(record: DecisionRecord): DecisionInput {
  const { policy, parameters, promptBlocks, blockTokens, promptTokens, expectedOutputTokens, chance } = record;
  return {
    policy,
    parameters,
    request: { promptBlocks, blockTokens, promptTokens, expectedOutputTokens },
    chance,
    candidates: (record.candidates ?? []).map(({ replica, activeBlocks, ...known }) => ({
      worker: replica,
      decodeBlocks: activeBlocks,
      ...known,
    })),
  };
}
