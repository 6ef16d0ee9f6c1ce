/** A constant that may be fitted and the range physics and kernel measurements leave it. */
export interface FitBound<Name extends string> {
  readonly name: Name;
  readonly low: number;
  readonly high: number;
}

/** What a fit changed and by how much the loss fell. */
export interface FitOutcome<Values> {
  readonly values: Values;
  readonly lossBefore: number;
  readonly lossAfter: number;
  readonly evaluations: number;
}

const FIRST_STEP_SHARE = 0.2;
const LAST_STEP_SHARE = 0.005;
const MAX_EVALUATIONS = 400;

/**
 * Minimises a loss over a few bounded values by coordinate search: each value in turn moves by a share of its range, and
 * the share halves when none improves. Deterministic, needs no derivatives, and never leaves the bounds. A loss may stop
 * adding up as soon as it reaches `worthless`, the best found so far.
 */
export function fitWithinBounds<Name extends string, Values extends Readonly<Record<Name, number>>>(
  start: Values,
  bounds: readonly FitBound<Name>[],
  loss: (values: Values, worthless: number) => number,
): FitOutcome<Values> {
  let values = start;
  for (const { name, low, high } of bounds) values = { ...values, [name]: Math.min(high, Math.max(low, values[name])) };
  const lossBefore = loss(values, Number.POSITIVE_INFINITY);
  let best = lossBefore;
  let evaluations = 1;
  for (let share = FIRST_STEP_SHARE; share >= LAST_STEP_SHARE && evaluations < MAX_EVALUATIONS;) {
    let improved = false;
    for (const { name, low, high } of bounds) {
      for (const direction of [1, -1]) {
        const moved = Math.min(high, Math.max(low, values[name] + direction * share * (high - low)));
        if (moved === values[name]) continue;
        const candidate = { ...values, [name]: moved };
        const found = loss(candidate, best);
        evaluations += 1;
        if (found < best) {
          best = found;
          values = candidate;
          improved = true;
          break;
        }
      }
    }
    if (!improved) share /= 2;
  }
  return { values, lossBefore, lossAfter: best, evaluations };
}
