import { describe, expect, it } from "vitest";
import { candidateView, type CandidateRow, type RequestRow } from "./candidate-view.ts";
import { createPolicy } from "./registry.ts";
import type { Policy } from "./types.ts";

const REQUEST: RequestRow = { promptBlocks: 64, expectedOutputTokens: 200 };
const HOLDER = { cachedBlocks: 60, confirmedBlocks: 60 };

function chosen(
  rows: readonly CandidateRow[],
  request: RequestRow = REQUEST,
  policy = createPolicy("warmpath"),
): string {
  const choice = policy.choose(candidateView(request, rows));
  return choice.kind === "place" ? rows[choice.replica].name : choice.kind;
}

function terms(policy: Policy, row: CandidateRow, request: RequestRow = REQUEST): Record<string, number> {
  const [candidate] = policy.explain(candidateView(request, [row])).candidates;
  return Object.fromEntries(candidate.terms.map(({ name, value }) => [name, value]));
}

describe("warmpath", () => {
  it("goes where the prompt is cached while that replica has room", () => {
    const busy = { ...HOLDER, inFlight: 3, decoding: 3, contextTokens: 9_000 };
    expect(chosen([{ name: "cold" }, { name: "warm", ...busy }])).toBe("warm");
  });

  it("leaves the cache when the queue there costs more than it saves", () => {
    const queued = { ...HOLDER, inFlight: 8, decoding: 3, pendingPrefillTokens: 40_000, contextTokens: 9_000 };
    expect(chosen([{ name: "cold" }, { name: "warm", ...queued }])).toBe("cold");
  });

  it("sees a full batch coming: the first request without a slot goes elsewhere", () => {
    const full = (inFlight: number): CandidateRow => {
      return {
        name: "warm",
        cachedBlocks: 16,
        confirmedBlocks: 16,
        batchSlots: 16,
        inFlight,
        decoding: inFlight,
        contextTokens: 4_000 * inFlight,
      };
    };
    const other = { name: "cold", batchSlots: 16, inFlight: 10, decoding: 10, contextTokens: 40_000 };
    const request = { promptBlocks: 16, expectedOutputTokens: 200 };
    expect(chosen([full(15), other], request)).toBe("warm");
    expect(chosen([full(16), other], request)).toBe("cold");
  });

  it("sees a full pool coming", () => {
    const crowded = { inFlight: 4, decoding: 4, contextTokens: 40_000, kvBlocks: 700 };
    const policy = createPolicy("warmpath");
    expect(terms(policy, { name: "tight", ...crowded, newBlocks: 690 })["memory wait"]).toBeGreaterThan(0);
    expect(terms(policy, { name: "roomy", ...crowded, newBlocks: 300 })["memory wait"]).toBe(0);
  });

  it("gives less for blocks that are expected than for blocks that are there", () => {
    const policy = createPolicy("warmpath");
    const confirmed = terms(policy, { name: "a", cachedBlocks: 60, confirmedBlocks: 60 })["own prompt"];
    const expected = terms(policy, { name: "a", cachedBlocks: 60, confirmedBlocks: 0 })["own prompt"];
    expect(expected).toBeGreaterThan(confirmed);
    expect(expected).toBeLessThan(terms(policy, { name: "a" })["own prompt"]);
  });

  it("holds only where it may, and only if the best place has no free slot", () => {
    const full = { batchSlots: 8, inFlight: 8, decoding: 8, contextTokens: 8_000 };
    const rows = [
      { name: "a", ...full },
      { name: "b", ...full },
    ];
    expect(chosen(rows, { ...REQUEST, mayHold: true })).toBe("hold");
    expect(chosen(rows, REQUEST)).not.toBe("hold");
    expect(chosen([...rows, { name: "free", batchSlots: 8 }], { ...REQUEST, mayHold: true })).toBe("free");
  });

  it("waits for a warm replica rather than waste a prefill, where the wait is the smaller harm", () => {
    const warm = { name: "warm", cachedBlocks: 600, confirmedBlocks: 600, batchSlots: 64, inFlight: 64, decoding: 64 };
    const rows = [
      { ...warm, contextTokens: 64_000 },
      { name: "cold", batchSlots: 64, inFlight: 60, decoding: 60, contextTokens: 60_000 },
    ];
    const request = { promptBlocks: 640, expectedOutputTokens: 20, mayHold: true };
    expect(chosen(rows, request)).toBe("hold");
  });

  it("avoids a replica that it has learned to be slow", () => {
    const policy = createPolicy("warmpath");
    const load = { inFlight: 4, decoding: 4, contextTokens: 8_000 };
    const meanwhile = { tokens: 0, pairs: 0, batches: 0 };
    for (let i = 0; i < 4_000; i++) {
      const replica = i % 2;
      const sinceLastNs = replica === 0 ? 64 * 40e6 : 64 * 20e6;
      policy.observe({ kind: "grew", nowNs: i, replica, tokens: 64, sinceLastNs, meanwhile, load });
    }
    expect(chosen([{ name: "slow" }, { name: "fast", inFlight: 1, decoding: 1 }], REQUEST, policy)).toBe("fast");
  });

  it("explains a decision by what it knew then, whatever it has learned since", () => {
    const policy = createPolicy("warmpath");
    const view = candidateView(REQUEST, [{ name: "a", inFlight: 2, decoding: 1, pendingPrefillTokens: 500 }]);
    const before = policy.explain(view);
    const learned = policy.learned?.(view);
    const load = { inFlight: 1, decoding: 1, contextTokens: 1_000 };
    const meanwhile = { tokens: 0, pairs: 0, batches: 0 };
    for (let i = 0; i < 100; i++) {
      policy.observe({ kind: "grew", nowNs: i, replica: 0, tokens: 1, sinceLastNs: 5e6, meanwhile, load });
    }
    expect(policy.explain(view)).not.toEqual(before);
    expect(policy.explain(view, learned)).toEqual(before);
  });
});
