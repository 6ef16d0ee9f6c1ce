import { candidateView } from "../policy/candidate-view.ts";
import { createPolicy } from "../policy/registry.ts";
import type { CandidateView, Explanation, Policy } from "../policy/types.ts";
import type { DecisionRecord } from "./decision-record.ts";

/** A recorded decision with every candidate's cost taken apart. */
export interface ExplainedDecision extends DecisionRecord {
  /** Undefined where the record keeps no candidates. */
  readonly explanation: Explanation | undefined;
}

/**
 * Recomputes the costs of a recorded decision, with what the policy had learned by then. The policy is made anew from the
 * record unless one is passed in.
 */
export function explainRecord(record: DecisionRecord, policy?: Policy): ExplainedDecision {
  const view = recordedView(record);
  if (view === undefined) return { ...record, explanation: undefined };
  const judge = policy ?? createPolicy(record.policy, record.parameters);
  return { ...record, explanation: judge.explain(view, record.learned) };
}

/** The view a recorded decision was made from, with candidates numbered as in the record. */
export function recordedView(record: DecisionRecord): CandidateView | undefined {
  if (record.candidates === undefined) return undefined;
  const request = {
    promptBlocks: record.promptBlocks,
    promptTokens: record.promptTokens,
    blockTokens: record.blockTokens,
    expectedOutputTokens: record.expectedOutputTokens,
    chance: record.chance,
    mayHold: record.mayHold,
    nowNs: record.decidedNs,
  };
  const rows = record.candidates.map(({ replica, ...row }) => ({ name: replica, ...row }));
  return { ...candidateView(request, rows), sessionKey: record.sessionKey };
}
