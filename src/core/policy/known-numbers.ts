import { SPEED_NUMBERS } from "./speed-model.ts";

/**
 * What `warmpath` knows beside the view, as plain numbers that are kept with a decision: the terms of the speed model, then these of the
 * fleet, then some of each candidate.
 */
export const HIT_SHARE: number = SPEED_NUMBERS;
export const COPY_WORTH: number = HIT_SHARE + 1;
export const PRESSURE: number = COPY_WORTH + 1;
export const ARRIVALS: number = PRESSURE + 1;
/** From when on a first token is late; 0 while that is not known. */
export const LATE: number = ARRIVALS + 1;
/** Until when whoever waits for a prompt under way must have a first token; 0 where nobody may wait. */
export const WAIT_UNTIL: number = LATE + 1;
/** What a block counts for that a prompt under way is yet to compute. */
export const UNDER_WAY_CREDIT: number = WAIT_UNTIL + 1;
export const PER_CANDIDATE: number = UNDER_WAY_CREDIT + 1;
/**
 * Its factor, what is left of the prompts ahead, how many it would be computed with, blocks it surely holds, and for how long the
 * eldest of those it would be computed with has waited.
 */
export const CANDIDATE_NUMBERS: number = 5;

export function settledBlocks(at: number, known: ArrayLike<number>): number {
  return known[PER_CANDIDATE + at * CANDIDATE_NUMBERS + 3];
}

export function waitedNs(at: number, known: ArrayLike<number>): number {
  return known[PER_CANDIDATE + at * CANDIDATE_NUMBERS + 4];
}
