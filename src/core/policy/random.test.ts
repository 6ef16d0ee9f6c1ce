import { describe, expect, it } from "vitest";
import { Rng } from "../rng.ts";
import { candidateView } from "./candidate-view.ts";
import { random } from "./random.ts";

const rows = ["a", "b", "c", "d", "e"].map((name, i) => ({ name, inFlight: 10 * i, cachedBlocks: i }));

describe("random", () => {
  it("chooses all replicas equally often, whatever their load and cache", () => {
    const policy = random.create({});
    const rng = new Rng(1);
    const visits = rows.map(() => 0);
    for (let n = 0; n < 50_000; n++) {
      const choice = policy.choose(candidateView({ promptBlocks: 8, chance: rng.u32() }, rows));
      if (choice.kind === "place") visits[choice.replica]++;
    }
    // Five standard deviations of 10,000 out of 50,000.
    for (const count of visits) expect(Math.abs(count - 10_000)).toBeLessThan(450);
  });

  it("does not move a choice when a replica that was not chosen leaves", () => {
    const policy = random.create({});
    const all = policy.choose(candidateView({ promptBlocks: 8, chance: 77 }, rows));
    if (all.kind !== "place") throw new Error("nothing placed");
    const leaver = all.runnerUp;
    const fewer = rows.map((row, i) => Object.assign({}, row, { eligible: i !== leaver }));
    expect(policy.choose(candidateView({ promptBlocks: 8, chance: 77 }, fewer))).toMatchObject({
      replica: all.replica,
    });
  });
});
