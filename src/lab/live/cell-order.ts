import type { Cell } from "../experiment/cells.ts";
import type { CellOrder } from "../experiment/types.ts";

/**
 * The order in which live cells are run, as their numbers in the file's order. One arm after the other where switching is
 * dear. Interleaved where it is cheap: the arms of a level in turn, and the next time in the opposite order, so that what
 * drifts over hours falls on all of them alike (ABBA).
 */
export function orderedCells(cells: readonly Cell[], order: CellOrder): number[] {
  if (order === "by-arm") return cells.map((_, index) => index);
  const groups = new Map<string, number[]>();
  for (const [index, { level, run }] of cells.entries()) {
    const key = JSON.stringify([level, run]);
    groups.set(key, [...(groups.get(key) ?? []), index]);
  }
  return [...groups.values()].flatMap((group, at) => (at % 2 === 0 ? group : group.toReversed()));
}
