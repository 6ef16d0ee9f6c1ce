import { describe, expect, test } from "vitest";
import { type CandidateRow, type DecisionView, whyChosen } from "./decision-view.ts";

function candidate(worker: string, prefill: number, decode: number): CandidateRow {
  const terms = [
    { name: "prefill", value: prefill },
    { name: "decode", value: decode },
  ];
  const cachedBlocks = 100 - prefill;
  return {
    worker,
    cachedBlocks,
    prefillBlocks: prefill,
    loadBlocks: decode,
    inFlight: 1,
    cost: prefill + decode,
    terms,
  };
}

/** The mission's example: 100 blocks, worker 2 has 75 of them. */
const EXAMPLE: DecisionView = {
  decision: 1,
  request: "request-1",
  policy: "kv-cost",
  rule: "1 × prefill blocks + decode blocks",
  unit: "blocks",
  promptTokens: 6400,
  promptBlocks: 100,
  chosen: "worker 2",
  runnerUp: "worker 1",
  margin: 60,
  tied: 1,
  refusal: null,
  queueWaitMs: 0,
  predictedCachedTokens: 4800,
  observedCachedTokens: null,
  ttftMs: null,
  filtered: [],
  candidates: [candidate("worker 1", 80, 10), candidate("worker 2", 25, 5), candidate("worker 3", 90, 9)],
};

describe("why a worker was chosen", () => {
  test("is said by the policy's own terms, the one that mattered most first", () => {
    expect(whyChosen(EXAMPLE)).toBe(
      "worker 2 costs 60 blocks less than worker 1: prefill 25 against 80, decode 5 against 10.",
    );
  });

  test("leaves out terms in which the winner was worse", () => {
    const candidates = [candidate("worker 1", 80, 1), candidate("worker 2", 25, 5)];
    expect(whyChosen({ ...EXAMPLE, candidates, margin: 51 })).toBe(
      "worker 2 costs 51 blocks less than worker 1: prefill 25 against 80.",
    );
  });

  test("speaks of turns where a policy takes turns", () => {
    expect(whyChosen({ ...EXAMPLE, unit: "decision number" })).toBe("It was the turn of worker 2; worker 1 is next.");
  });

  test.each([
    [{ tied: 2 }, "2 candidates cost the same; the tie-break took worker 2."],
    [{ runnerUp: null }, "worker 2 was the only candidate."],
    [{ chosen: null, refusal: "queue-full" }, "Turned away: queue-full."],
    [{ chosen: null }, "Nobody was chosen."],
    [{ candidates: [] }, "worker 2 costs 60 blocks less than worker 1."],
  ])("is said in the other cases: %o", (changes, sentence) => {
    expect(whyChosen({ ...EXAMPLE, ...changes })).toBe(sentence);
  });
});
