import { quantile } from "../quantile.ts";
import type { SessionSupply } from "../request.ts";

/** Lengths of one turn over many sessions. */
export interface TurnLengths {
  /** From 1, as people count. */
  readonly turn: number;
  readonly requests: number;
  readonly inputMean: number;
  readonly inputP50: number;
  readonly outputMean: number;
}

/** Input and output lengths of a workload by turn and over all requests. */
export interface TurnProfile {
  readonly sessions: number;
  readonly requests: number;
  readonly turns: readonly TurnLengths[];
  readonly inputP50: number;
  readonly inputP95: number;
  readonly outputMean: number;
}

/** One turn of the conversation that the H200 study prints as representative. */
export interface PublishedTurn {
  readonly turn: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** The H200 study's "Per-turn profile from a representative conversation". */
export const PUBLISHED_TURNS: readonly PublishedTurn[] = [
  { turn: 1, inputTokens: 3500, outputTokens: 555 },
  { turn: 2, inputTokens: 4100, outputTokens: 818 },
  { turn: 3, inputTokens: 5000, outputTokens: 1008 },
  { turn: 4, inputTokens: 6100, outputTokens: 875 },
  { turn: 5, inputTokens: 7000, outputTokens: 888 },
];

/** The H200 study's "Across all concurrent conversations, p95 input length reaches ~12,700 tokens". */
export const PUBLISHED_INPUT_P95 = 12_700;
/** The H200 study's "Average output tokens per turn: ~830". */
export const PUBLISHED_OUTPUT_MEAN = 830;

/** The lengths of the first sessions of a supply whose turns all follow their history. */
export function turnProfile(supply: SessionSupply, sessions: number): TurnProfile {
  const inputs: number[][] = [];
  const outputs: number[][] = [];
  let counted = 0;
  for (; counted < sessions; counted++) {
    const script = supply.session(counted);
    if (script === undefined) break;
    let history = 0;
    for (const [turn, { prompt, outputTokens }] of script.turns.entries()) {
      const input =
        prompt.kind === "whole"
          ? prompt.prompt.tokens
          : prompt.segments.reduce((sum, segment) => sum + segment.tokens, history);
      (inputs[turn] ??= []).push(input);
      (outputs[turn] ??= []).push(outputTokens);
      history = input + outputTokens;
    }
  }
  const allInputs = inputs.flat();
  return {
    sessions: counted,
    requests: allInputs.length,
    turns: inputs.map((lengths, at) => ({
      turn: at + 1,
      requests: lengths.length,
      inputMean: mean(lengths),
      inputP50: quantile(lengths, 0.5),
      outputMean: mean(outputs[at]),
    })),
    inputP50: quantile(allInputs, 0.5),
    inputP95: quantile(allInputs, 0.95),
    outputMean: mean(outputs.flat()),
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
