import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { fleetMemory } from "../experiment/memory.ts";
import { type Bench, perturbedFleet } from "./plan.ts";
import { readSuite } from "./read.ts";

const SUITE = new URL("../../../presets/policy-suite/suite.yaml", import.meta.url);
const TOKENS_PER_SEQUENCE = 4_000;

const { suite } = readSuite(parse(readFileSync(SUITE, "utf8"), { merge: true }));
if (suite === undefined) throw new Error("the shipped suite cannot be read");

/** All that a perturbed fleet depends on; its workload is of no matter. */
const benchWith = (fleet: Bench["fleet"]): Bench => ({ fleet, tokensPerSequence: TOKENS_PER_SEQUENCE }) as Bench;

describe.each(Object.entries(suite.fleets))("the fleet %s", (_, fleet) => {
  const planned = fleetMemory(fleet, TOKENS_PER_SEQUENCE);

  test.each(suite.perturbations.map((perturbation) => [perturbation.name, perturbation] as const))(
    "fits its cards under %s",
    (_name, perturbation) => {
      const perturbed = perturbedFleet(benchWith(fleet), perturbation);
      expect(fleetMemory(perturbed, TOKENS_PER_SEQUENCE).problem).toBeUndefined();
    },
  );

  test("has a smaller pool where a perturbation says so, and a larger one as far as there is room", () => {
    const tokensOf = (kvPool: number): number =>
      fleetMemory(perturbedFleet(benchWith(fleet), { name: "pool", kvPool }), TOKENS_PER_SEQUENCE).poolTokens;
    expect(tokensOf(0.8) / planned.poolTokens).toBeCloseTo(0.8, 2);
    const most = planned.poolTokens + planned.headroomBytes / planned.bytesPerToken;
    expect(tokensOf(100)).toBeGreaterThan(most - fleet.blockTokens - 1);
    expect(tokensOf(100)).toBeLessThanOrEqual(most);
  });
});
