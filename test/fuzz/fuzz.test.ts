import { describe, expect, test } from "vitest";
import { Rng } from "../../src/core/rng.ts";
import { mutated } from "./mutation.ts";
import { PARSERS } from "./parsers.ts";
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
