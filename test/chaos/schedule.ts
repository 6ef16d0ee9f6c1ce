import type { Rng } from "../../src/core/rng.ts";

export const TROUBLES = ["killed", "hung", "slow", "cut off", "no broker"] as const;

export type Trouble = (typeof TROUBLES)[number];

/** A trouble begins or ends, once so many more requests have been completed since the turn before. */
export interface Turn {
  readonly afterMore: number;
  readonly trouble: Trouble;
  readonly begins: boolean;
}

/** Requests that must be completed between two turns at least: the gateway keeps serving. */
const LEAST_SERVED = 5;
/** All troubles begin within so many requests of each other, and last so long. */
const SPREAD = 80;
const SHORTEST = 20;
const LONGEST = 80;

/** A schedule in which troubles come as chance has it, several at a time. */
export function mingled(rng: Rng): Turn[] {
  const turns = TROUBLES.flatMap((trouble) => {
    const from = rng.below(SPREAD);
    const to = from + SHORTEST + rng.below(LONGEST - SHORTEST);
    return [
      { at: from, trouble, begins: true },
      { at: to, trouble, begins: false },
    ];
  });
  turns.sort((a, b) => a.at - b.at);
  return turns.map(({ at, trouble, begins }, i) => {
    const before = i === 0 ? 0 : turns[i - 1].at;
    return { afterMore: Math.max(LEAST_SERVED, at - before), trouble, begins };
  });
}

/** A schedule in which each trouble is over before the next begins. */
export function oneByOne(rng: Rng): Turn[] {
  return shuffled(TROUBLES, rng).flatMap((trouble) => [
    { afterMore: LEAST_SERVED + rng.below(SHORTEST), trouble, begins: true },
    { afterMore: SHORTEST + rng.below(SHORTEST), trouble, begins: false },
  ]);
}

/** The same in another order. */
export function shuffled<T>(all: readonly T[], rng: Rng): T[] {
  const left = [...all];
  return all.map(() => left.splice(rng.below(left.length), 1)[0]);
}
