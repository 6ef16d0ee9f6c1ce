import { describe, expect, it } from "vitest";
import { candidateView, type CandidateRow } from "./candidate-view.ts";
import { prefixScore } from "./prefix-score.ts";

function terms(rows: readonly CandidateRow[], promptBlocks = 10): number[][] {
  const { candidates } = prefixScore.create({}).explain(candidateView({ promptBlocks }, rows));
  return candidates.map((candidate) => candidate.terms.map(({ value }) => value));
}

describe("prefix-score", () => {
  it("weighs prefix 2, queue 1 and KV use 1", () => {
    const rows = [
      { name: "a", cachedBlocks: 5, inFlight: 6, decoding: 4, activeBlocks: 30, kvBlocks: 100 },
      { name: "b", inFlight: 6, decoding: 6, activeBlocks: 250, kvBlocks: 100 },
      { name: "c", cachedBlocks: 10, inFlight: 9, decoding: 5, kvBlocks: 100 },
    ];
    expect(terms(rows)).toEqual([
      [1, 0.5, 0.3],
      [2, 0, 1],
      [0, 1, 0],
    ]);
    expect(prefixScore.create({}).choose(candidateView({ promptBlocks: 10 }, rows))).toMatchObject({ replica: 2 });
  });

  it("says nothing of queues that are equal", () => {
    const rows = [
      { name: "a", inFlight: 5, decoding: 2 },
      { name: "b", inFlight: 3 },
    ];
    expect(terms(rows).map(([, queue]) => queue)).toEqual([0, 0]);
  });

  it("takes an unknown KV pool to be as full as the known ones", () => {
    const rows = [
      { name: "a", activeBlocks: 10, kvBlocks: 100 },
      { name: "b", activeBlocks: 30, kvBlocks: 100 },
      { name: "c", activeBlocks: 9000, kvBlocks: 0 },
    ];
    expect(terms(rows).map(([, , kv]) => kv)).toEqual([0.1, 0.3, 0.2]);
    expect(terms(rows.slice(2)).map(([, , kv]) => kv)).toEqual([0]);
  });

  it("charges everybody the same for a prompt without a full block", () => {
    expect(terms([{ name: "a" }, { name: "b" }], 0).map(([prefix]) => prefix)).toEqual([2, 2]);
  });
});
