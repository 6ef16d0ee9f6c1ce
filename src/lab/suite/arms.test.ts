import { describe, expect, test } from "vitest";
import { POLICIES } from "../../core/policy/registry.ts";
import { candidateArm, suiteArms } from "./arms.ts";
import { readTunedRivals } from "./read.ts";
import { drawSettings, objectiveOf } from "./tuning.ts";
import type { Suite } from "./types.ts";
import type { ScoredCell } from "./league.ts";
import type { ArmScore } from "./score.ts";

const SUITE = { policies: undefined } as unknown as Suite;
const TUNED = readTunedRivals({ tuned: [{ policy: "prefix-score", parameters: { kv_weight: 3 } }] }, "tuned.yaml");

const namesOf = (choice: Parameters<typeof suiteArms>[2]): string[] =>
  suiteArms(SUITE, TUNED, choice).map(({ name }) => name);

describe("the arms of a suite", () => {
  test("are all policies there are, and the tuned rivals", () => {
    expect(namesOf({})).toEqual([...POLICIES.map(({ name }) => name), "prefix-score (tuned)"]);
  });

  test("are those that are named, with both settings of a rival, and always the reference", () => {
    expect(namesOf({ policies: ["product", "prefix-score"] })).toEqual([
      "round-robin",
      "product",
      "prefix-score",
      "prefix-score (tuned)",
    ]);
    expect(namesOf({ policies: ["prefix-score (tuned)"] })).toEqual(["round-robin", "prefix-score (tuned)"]);
  });

  test("take other knobs, in place of the default or beside it", () => {
    const arms = suiteArms(SUITE, TUNED, {
      policies: ["prefix-score"],
      set: ["prefix-score.prefix_weight=5", "prefix-score.queue_weight=0"],
      also: ["kv-cost.form=dynamo,prefill_load_scale=4"],
    });
    expect(arms.map(({ name, parameters }) => [name, parameters["prefix_weight"] ?? parameters["form"]])).toEqual([
      ["round-robin", undefined],
      ["prefix-score", 5],
      ["prefix-score (tuned)", 2],
      ["kv-cost form=dynamo,prefill_load_scale=4", "dynamo"],
    ]);
    expect(arms[1].parameters["queue_weight"]).toBe(0);
  });

  test.each([
    [{ policies: ["none"] }, /"none" is not in the suite; it has round-robin, /],
    [{ set: ["none.knob=1"] }, /"none" is not in the suite/],
    [{ set: ["prefix-score"] }, /must be written as policy\.knob=value/],
    [{ also: ["prefix-score.knob=1"] }, /parameter knob is not a parameter/],
  ])("refuse %j", (choice, complaint) => {
    expect(() => suiteArms(SUITE, TUNED, choice)).toThrow(complaint);
  });

  test("are judged for the candidate that is named, or the one there is", () => {
    const arms = suiteArms(SUITE, [], { policies: ["product", "random"] });
    expect(candidateArm(arms, "random")).toBe("random");
    expect(candidateArm(arms, undefined)).toBe("product");
    expect(() => candidateArm(arms, "kv-cost")).toThrow(/"kv-cost" is not in the suite/);
  });

  test("cannot be read from a file of tuned rivals that is none", () => {
    expect(() => readTunedRivals({ tuned: [{ policy: "prefix-score" }] }, "tuned.yaml")).toThrow(
      /^tuned\.yaml: tuned\[0\]\.parameters is missing$/,
    );
  });
});

describe("the search for a rival's best setting", () => {
  const rival = {
    policy: "prefix-score",
    grids: [{ prefix_weight: [1, 2, 3] }, { kv_weight: [0, 1, 2, 4, 8], queue_weight: [1, 2, 4, 8] }],
  };

  test("tries the default first, then each grid in turn, and nothing twice", () => {
    const arms = drawSettings(rival, 12, 7);
    expect(arms).toEqual(drawSettings(rival, 12, 7));
    expect(arms).toHaveLength(12);
    expect(arms[0].parameters).toEqual({ prefix_weight: 2, queue_weight: 1, kv_weight: 1 });
    expect(new Set(arms.map(({ name }) => name)).size).toBe(12);
    const ofFirstGrid = arms.filter(({ parameters }) => parameters["prefix_weight"] !== 2);
    expect(ofFirstGrid).toHaveLength(2);
    expect(drawSettings(rival, 12, 8)).not.toEqual(arms);
  });

  test("tries everything where that is not too much", () => {
    expect(drawSettings(rival, 1000, 7)).toHaveLength(22);
  });

  test("prefers what is faster in most cells, not in the worst one alone", () => {
    const score = (ttftP95Ms: number | null): ArmScore => ({ ttftP95Ms, e2eMeanMs: 1 }) as unknown as ArmScore;
    const cells = [
      [score(100), score(50), score(100)],
      [score(100), score(50), score(100)],
      [score(1000), score(1100), score(800)],
    ].map((scores) => ({ scores }) as unknown as ScoredCell);
    expect(objectiveOf(cells, 0, 0)).toBe(0);
    expect(objectiveOf(cells, 1, 0)).toBeLessThan(objectiveOf(cells, 2, 0));
    expect(objectiveOf([{ scores: [score(1), score(null)] } as unknown as ScoredCell], 1, 0)).toBeCloseTo(
      Math.log(100) / 2,
      12,
    );
  });
});
