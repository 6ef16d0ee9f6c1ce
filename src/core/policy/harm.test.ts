import { describe, expect, it } from "vitest";
import { candidateView } from "./candidate-view.ts";
import { type Beliefs, createHarm, firstTokenNs, type Harm, judge } from "./harm.ts";

const MS = 1e6;
const LAUNCH_NS = 50 * MS;
const DECODING = 100;
/** A step of 10 ms, a prompt token of 0.1 ms that no launch hides, and 50 ms for a batch of prompts. */
const COEFFICIENTS_NS = [10 * MS, 0, 0, 0.1 * MS, 0, LAUNCH_NS, 0];

/** The harm of a prompt of 160 tokens where so many prompts come to the replica in a second. */
function harmAt(arrivalsPerSecond: number, together = 0): Harm {
  const beliefs: Beliefs = {
    coefficientsNs: COEFFICIENTS_NS,
    factor: 1,
    aheadNs: 0,
    together,
    heldBlocks: 0,
    mostSettled: 0,
    arrivals: arrivalsPerSecond / 1e9,
    hitShare: 0,
  };
  const view = candidateView({ promptBlocks: 10, blockTokens: 16, expectedOutputTokens: 20 }, [
    { name: "a", inFlight: DECODING, decoding: DECODING },
  ]);
  const harm = createHarm();
  judge(harm, view, 0, beliefs);
  return harm;
}

describe("what a prompt answers for of launching its batch", () => {
  it("is all of it where prompts come one at a time", () => {
    expect(harmAt(0).stallNs).toBeCloseTo((LAUNCH_NS + 16 * MS) * DECODING);
    expect(harmAt(1).stallNs).toBeGreaterThan(0.99 * harmAt(0).stallNs);
  });

  it("is nothing where every step has some anyway: only what it adds stops others, and nobody is spared anything by meeting", () => {
    const busy = harmAt(1_000, 3);
    expect(busy.stallNs).toBeCloseTo(16 * MS * DECODING);
    expect(busy.sharedNs).toBeCloseTo(0);
    expect(harmAt(0, 3).sharedNs).toBeGreaterThan(0);
  });

  it("is the less the more come, and its own first token takes as long all the same", () => {
    const rates = [0, 20, 50, 100, 200, 400];
    const stalls = rates.map((rate) => harmAt(rate).stallNs);
    expect(stalls).toEqual(stalls.toSorted((a, b) => b - a));
    expect(new Set(stalls).size).toBe(rates.length);
    expect(new Set(rates.map((rate) => firstTokenNs(harmAt(rate)))).size).toBe(1);
  });
});
