import type { Offers } from "./offers.ts";

/**
 * Makes those as cheap as the cheapest that are less than `closeMs` above it and hold no less of the prompt, and notes by how much each
 * was above it: whoever was chosen longest ago then goes first.
 */
export function letTakeTurns(
  { costs, held, overlooked }: Offers,
  count: number,
  cheapest: number,
  closeMs: number,
): void {
  const lowest = costs[cheapest];
  for (let at = 0; at < count; at++) {
    const isClose = costs[at] < lowest + closeMs && held[at] >= held[cheapest];
    overlooked[at] = isClose ? costs[at] - lowest : 0;
    if (isClose) costs[at] = lowest;
  }
}

/** Where the lowest of the first `count` costs is. */
export function placeOfLowest(costs: Float64Array, count: number): number {
  let lowest = 0;
  for (let at = 1; at < count; at++) if (costs[at] < costs[lowest]) lowest = at;
  return lowest;
}
