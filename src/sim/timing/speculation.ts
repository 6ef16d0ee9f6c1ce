import type { Rng } from "../../core/rng.ts";
import type { StepShape, StepTimer } from "./step-timer.ts";

/** Tokens one target step yields on average with `drafts` proposals, each accepted with the same probability. */
export function expectedTokens(acceptance: number, drafts: number): number {
  return acceptance === 1 ? drafts + 1 : (1 - acceptance ** (drafts + 1)) / (1 - acceptance);
}

/** The same where position m is accepted with its own probability, given that all before it were. */
export function expectedTokensByPosition(acceptances: readonly number[]): number {
  let reached = 1;
  let tokens = 1;
  for (const acceptance of acceptances) {
    reached *= acceptance;
    tokens += reached;
  }
  return tokens;
}

/** Draws how many tokens one sequence gains in one step: accepted drafts and the target's own token. */
export function drawTokens(rng: Rng, acceptance: number, drafts: number): number {
  let tokens = 1;
  while (tokens <= drafts && rng.uniform() < acceptance) tokens += 1;
  return tokens;
}

/** Draws a request's acceptance rate: Beta distributed, because texts differ in how predictable they are. */
export function drawAcceptance(rng: Rng, mean: number, deviation: number): number {
  if (deviation === 0) return mean;
  const concentration = (mean * (1 - mean)) / (deviation * deviation) - 1;
  const a = drawGamma(rng, mean * concentration);
  return a / (a + drawGamma(rng, (1 - mean) * concentration));
}

/** Marsaglia and Tsang's method; shapes below 1 are lifted by one and scaled back. */
function drawGamma(rng: Rng, shape: number): number {
  if (shape < 1) return drawGamma(rng, shape + 1) * rng.uniform() ** (1 / shape);
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const normal = Math.sqrt(-2 * Math.log(rng.uniform())) * Math.cos(2 * Math.PI * rng.uniform());
    const v = (1 + c * normal) ** 3;
    if (v > 0 && Math.log(rng.uniform()) < 0.5 * normal * normal + d - d * v + d * Math.log(v)) return d * v;
  }
}

/** Times the decode steps of a target model with a separate draft model on the same GPUs. */
export class SpeculativeTimer {
  readonly target: StepTimer;
  readonly draft: StepTimer;
  readonly drafts: number;
  readonly #step: StepShape = {
    prefillTokens: 0,
    prefillPairs: 0,
    decodeSequences: 0,
    decodeTokens: 0,
    contextTokens: 0,
    sampledRows: 0,
    prefillSequences: 0,
  };

  constructor(target: StepTimer, draft: StepTimer, drafts: number) {
    this.target = target;
    this.draft = draft;
    this.drafts = drafts;
  }

  /**
   * The duration of one step in integer picoseconds. `step` counts sequences and context; every decoding sequence
   * verifies all drafts, and prompts pass through both models.
   */
  stepPs(step: Readonly<StepShape>): number {
    const own = this.#step;
    const sequences = step.decodeSequences;
    Object.assign(own, step);
    own.decodeTokens = sequences * (this.drafts + 1);
    own.sampledRows = step.sampledRows + sequences * this.drafts;
    const target = this.target.stepPs(own);
    if (sequences === 0) return target + this.draft.stepPs(step);
    // The draft runs one decode step per proposal; the first one also takes the prompt tokens in.
    const first = this.draft.stepPs(step);
    own.prefillTokens = 0;
    own.prefillPairs = 0;
    own.prefillSequences = 0;
    own.decodeTokens = sequences;
    own.sampledRows = sequences;
    return target + first + (this.drafts - 1) * this.draft.stepPs(own);
  }
}
