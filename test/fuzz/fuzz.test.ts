import { describe, expect, test } from "vitest";
import { Rng } from "../../src/core/rng.ts";
import { mutated } from "./mutation.ts";
import { PARSERS } from "./parsers.ts";
import { recorded } from "./record.ts";
import { describeFailure, runCases } from "./run-cases.ts";

/** A few thousand of each here; `npm run fuzz` does as many as one likes. */
const CASES = 3000;
const SEED = 1;

describe("parsers bear whatever comes", () => {
  test.each(PARSERS.map((parser) => [parser.name, parser] as const))("%s", async (_, parser) => {
    const failure = await runCases(parser, CASES, SEED);
    expect(failure && describeFailure(failure)).toBeUndefined();
  });
});

test("a failure is found, and its seed alone repeats it", async () => {
  const corpus = PARSERS[0].corpus;
  const picky = {
    name: "picky",
    corpus,
    parse: (bytes: Uint8Array) => {
      if (bytes.includes(0)) throw new Error("a zero");
    },
  };
  const failure = await runCases(picky, CASES, SEED);
  expect(failure?.seed).toBeGreaterThan(SEED);
  expect(await runCases(picky, 1, failure?.seed ?? 0)).toEqual(failure);
  expect(mutated(new Rng(5), corpus)).toEqual(mutated(new Rng(5), corpus));
});

test("the record has one line for each parser, the last that was run", () => {
  const run = { parser: "picky", cases: 10, seed: 1, day: "2026-11-15" };
  const once = recorded("# Fuzzing\n\nIntroduction\n\n## Record\n\nWords.\n", run);
  expect(once).toContain("Words.\n\n| parser |");
  const twice = recorded(recorded(once, { ...run, parser: "other" }), { ...run, cases: 20 });
  expect(twice.match(/^\| `.*$/gm)).toEqual([
    "| `other` | 10 | 1 | 2026-11-15 | no crash, no hang |",
    "| `picky` | 20 | 1 | 2026-11-15 | no crash, no hang |",
  ]);
  expect(twice).toContain("# Fuzzing\n\nIntroduction\n\n## Record\n\nWords.\n\n| parser |");
});
