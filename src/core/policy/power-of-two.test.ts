import { describe, expect, it } from "vitest";
import { Rng } from "../rng.ts";
import { candidateView } from "./candidate-view.ts";
import { powerOfTwo } from "./power-of-two.ts";

const policy = powerOfTwo.create({});
const rows = ["a", "b", "c", "d"].map((name, i) => ({ name, inFlight: i }));

describe("power-of-two", () => {
  it("takes the less loaded of two uniformly drawn replicas", () => {
    const rng = new Rng(5);
    const visits = rows.map(() => 0);
    for (let n = 0; n < 60_000; n++) {
      const choice = policy.choose(candidateView({ promptBlocks: 1, chance: rng.u32() }, rows));
      if (choice.kind === "place") visits[choice.replica]++;
    }
    // Of the six pairs, the least loaded wins three, the next two, then one, and the most loaded none.
    expect(Math.abs(visits[0] / 60_000 - 3 / 6)).toBeLessThan(0.0103);
    expect(Math.abs(visits[1] / 60_000 - 2 / 6)).toBeLessThan(0.0103);
    expect(Math.abs(visits[2] / 60_000 - 1 / 6)).toBeLessThan(0.0103);
    expect(visits[3]).toBe(0);
  });

  it("shows which two were drawn and keeps the others behind them", () => {
    const { candidates } = policy.explain(candidateView({ promptBlocks: 1, chance: 4 }, rows));
    const excluded = candidates.filter(({ terms }) =>
      terms.some((term) => term.name === "not drawn" && term.value > 0),
    );
    expect(excluded).toHaveLength(2);
    for (const { cost } of excluded) expect(cost).toBeGreaterThan(3);
  });

  it("is least-loaded where there are only two", () => {
    const two = candidateView({ promptBlocks: 1, chance: 8 }, rows.slice(2));
    expect(policy.choose(two)).toEqual({ kind: "place", replica: 0, runnerUp: 1, margin: 1, tied: 1 });
  });
});
