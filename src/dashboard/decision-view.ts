/** One candidate as the policy saw it. */
export interface CandidateRow {
  readonly worker: string;
  readonly cachedBlocks: number;
  /** Blocks of the prompt that it would have to compute. */
  readonly prefillBlocks: number;
  /** Blocks its running requests hold. */
  readonly loadBlocks: number;
  readonly inFlight: number;
  /** Lower is better; null is not eligible. */
  readonly cost: number | null;
  readonly terms: readonly { readonly name: string; readonly value: number }[];
}

/** One routing decision with every candidate. */
export interface DecisionView {
  readonly decision: number;
  readonly request: string;
  readonly policy: string;
  readonly rule: string | null;
  /** What costs are counted in. */
  readonly unit: string | null;
  readonly promptTokens: number;
  readonly promptBlocks: number;
  readonly chosen: string | null;
  readonly runnerUp: string | null;
  readonly margin: number;
  readonly tied: number;
  readonly refusal: string | null;
  readonly queueWaitMs: number;
  readonly predictedCachedTokens: number;
  readonly observedCachedTokens: number | null;
  /** From the decision to the first token. */
  readonly ttftMs: number | null;
  /** Workers that were no candidates, and why. */
  readonly filtered: readonly { readonly worker: string; readonly reason: string }[];
  readonly candidates: readonly CandidateRow[];
}

/** More than these make a sentence that nobody reads. */
const TERMS_NAMED = 2;

/** Why the chosen one won, in a sentence: by the policy's own terms, since nothing else decided. */
export function whyChosen(decision: DecisionView): string {
  const { chosen, runnerUp, margin, tied, refusal, unit } = decision;
  if (chosen === null) return refusal === null ? "Nobody was chosen." : `Turned away: ${refusal}.`;
  if (runnerUp === null) return `${chosen} was the only candidate.`;
  if (tied > 1) return `${tied} candidates cost the same; the tie-break took ${chosen}.`;
  // Turns are counted in decisions, and a difference of those means nothing to a reader.
  if (unit === "decision number") return `It was the turn of ${chosen}; ${runnerUp} is next.`;
  const terms = advantages(decision);
  const inUnit = unit === null ? "" : ` ${unit}`;
  const verdict = `${chosen} costs ${amount(margin)}${inUnit} less than ${runnerUp}`;
  return terms.length === 0 ? `${verdict}.` : `${verdict}: ${terms.join(", ")}.`;
}

/** The terms in which the chosen one was below the runner-up, those that made the most difference first. */
function advantages({ chosen, runnerUp, candidates }: DecisionView): string[] {
  const winner = candidates.find(({ worker }) => worker === chosen);
  const other = candidates.find(({ worker }) => worker === runnerUp);
  if (winner === undefined || other === undefined) return [];
  return winner.terms
    .map(({ name, value }) => ({
      name,
      value,
      against: other.terms.find((term) => term.name === name)?.value ?? value,
    }))
    .filter(({ value, against }) => value < against)
    .sort((a, b) => b.against - b.value - (a.against - a.value))
    .slice(0, TERMS_NAMED)
    .map(({ name, value, against }) => `${name} ${amount(value)} against ${amount(against)}`);
}

function amount(value: number): string {
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
}
