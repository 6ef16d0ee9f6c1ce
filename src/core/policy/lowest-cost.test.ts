import { array, assert, constantFrom, integer, property, record } from "fast-check";
import { describe, expect, it } from "vitest";
import { candidateView } from "./candidate-view.ts";
import { goesBefore, lowestCost, type TieBreak } from "./lowest-cost.ts";

const tieBreaks: readonly TieBreak[] = ["rotation", "draw"];

describe("lowestCost", () => {
  it("agrees with sorting by cost and tie-break", () => {
    const row = record({ cost: integer({ min: 0, max: 4 }), lastChosen: integer({ min: 0, max: 3 }) });
    const fleet = array(row, { minLength: 1, maxLength: 12 });
    assert(
      property(fleet, constantFrom(...tieBreaks), integer(), (replicas, tieBreak, chance) => {
        const rows = replicas.map(({ lastChosen }, i) => ({ name: `worker ${i}`, lastChosen }));
        const view = candidateView({ promptBlocks: 1, chance }, rows);
        const costs = Float64Array.from(replicas, ({ cost }) => cost);
        const [best, second] = replicas
          .map((_, i) => i)
          .toSorted((a, b) => costs[a] - costs[b] || (goesBefore(view, a, b, tieBreak) ? -1 : 1));
        expect(lowestCost(view, costs, tieBreak)).toEqual({
          kind: "place",
          replica: best,
          runnerUp: second ?? -1,
          margin: second === undefined ? 0 : costs[second] - costs[best],
          tied: replicas.filter(({ cost }) => cost === costs[best]).length,
        });
      }),
      { numRuns: 2000 },
    );
  });

  it("gives a tie to the replica that was chosen least recently", () => {
    const rows = [
      { name: "a", lastChosen: 9 },
      { name: "b", lastChosen: 4 },
      { name: "c", lastChosen: 7 },
    ];
    const choice = lowestCost(candidateView({ promptBlocks: 1 }, rows), Float64Array.of(1, 1, 1), "rotation");
    expect(choice).toEqual({ kind: "place", replica: 1, runnerUp: 2, margin: 0, tied: 3 });
  });

  it("orders even replicas that cannot be told apart", () => {
    const rows = [{ name: "same" }, { name: "same" }];
    const view = candidateView({ promptBlocks: 1 }, rows);
    for (const tieBreak of tieBreaks) {
      expect(goesBefore(view, 0, 1, tieBreak)).toBe(true);
      expect(goesBefore(view, 1, 0, tieBreak)).toBe(false);
    }
  });
});
