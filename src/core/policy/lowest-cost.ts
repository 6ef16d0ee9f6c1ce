import { drawBits, drawSeed } from "./draw.ts";
import type { CandidateView, Choice } from "./types.ts";

/**
 * How equal costs are told apart. `rotation` takes the least recently chosen, which spreads a burst of ties evenly;
 * `draw` takes one at random, as Dynamo does.
 */
export type TieBreak = "rotation" | "draw";

/** The answer where no replica passed the filters. */
export const NO_CANDIDATE: Choice = { kind: "none" };

/** True if `left` goes before `right` among equal costs; a total order that never depends on indices unless keys collide. */
export function goesBefore(view: CandidateView, left: number, right: number, tieBreak: TieBreak): boolean {
  if (tieBreak === "draw") {
    const seed = drawSeed(view.chance);
    const difference = drawBits(seed, view.key[left]) - drawBits(seed, view.key[right]);
    if (difference !== 0) return difference < 0;
  } else {
    const difference = view.lastChosen[left] - view.lastChosen[right];
    if (difference !== 0) return difference < 0;
  }
  const difference = view.key[left] - view.key[right];
  return difference === 0 ? left < right : difference < 0;
}

/**
 * Picks the cheapest candidate and the one it beat; `costs[i]` belongs to `view.candidates[i]`. One pass, and the margin
 * is never negative, because chance, where a policy uses any, is already part of the costs.
 */
export function lowestCost(view: CandidateView, costs: Float64Array, tieBreak: TieBreak): Choice {
  const { count, candidates } = view;
  if (count === 0) return NO_CANDIDATE;
  let best = candidates[0];
  let bestCost = costs[0];
  let second = -1;
  let secondCost = Infinity;
  let tied = 1;
  for (let i = 1; i < count; i++) {
    const cost = costs[i];
    if (cost > secondCost) continue;
    const replica = candidates[i];
    if (cost < bestCost) {
      second = best;
      secondCost = bestCost;
      best = replica;
      bestCost = cost;
      tied = 1;
    } else if (cost === bestCost) {
      tied++;
      if (goesBefore(view, replica, best, tieBreak)) {
        second = best;
        best = replica;
      } else if (secondCost > cost || goesBefore(view, replica, second, tieBreak)) {
        second = replica;
      }
      secondCost = cost;
    } else if (cost < secondCost || goesBefore(view, replica, second, tieBreak)) {
      second = replica;
      secondCost = cost;
    }
  }
  return { kind: "place", replica: best, runnerUp: second, margin: second < 0 ? 0 : secondCost - bestCost, tied };
}
