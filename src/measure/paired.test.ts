import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type RequestRecord, requestRecord } from "../core/request-record.ts";
import { Rng } from "../core/rng.ts";
import { blockLengthFor } from "./block-length.ts";
import { bootstrapInterval, medianOfSorted } from "./bootstrap.ts";
import { hodgesLehmann } from "./hodges-lehmann.ts";
import { ttftNs } from "./latencies.ts";
import { comparePaired, type PairedValues, pairRequests } from "./paired.ts";
import { signConsistency } from "./sign-consistency.ts";

const WINDOW = { startNs: 0, endNs: 1_000_000, drainNs: 1_000_000 };

function request(id: number, ttft: number | undefined): RequestRecord {
  const firstContentNs = ttft === undefined ? undefined : id + ttft;
  const account = ttft === undefined ? "failed" : "completed";
  return requestRecord({
    id: String(id),
    intendedNs: id,
    firstContentNs,
    endNs: firstContentNs ?? id,
    promptTokens: 1,
    account,
  });
}

const arm = (ttfts: readonly (number | undefined)[]): { records: RequestRecord[]; window: typeof WINDOW } => ({
  records: ttfts.map((ttft, id) => request(id, ttft)),
  window: WINDOW,
});

const paired = (baseline: number[], treatment: number[]): PairedValues => ({
  baseline: Float64Array.from(baseline),
  treatment: Float64Array.from(treatment),
  unpaired: 0,
});

describe("pairing", () => {
  it("finds the same request in both arms whatever their order, and counts those only one was offered", () => {
    const baseline = arm([10, 20, 30]);
    const treatment = { records: arm([11, 19, undefined, 5]).records.toReversed(), window: WINDOW };
    const pairs = pairRequests(baseline, treatment, ttftNs);
    expect([...pairs.baseline]).toEqual([10, 20, 30]);
    expect([...pairs.treatment]).toEqual([11, 19, Infinity]);
    expect(pairs.unpaired).toBe(1);
  });

  it("counts a completion against a failure as faster, and two failures as equal", () => {
    const pairs = pairRequests(arm([10, 20, undefined, undefined]), arm([9, undefined, 7, undefined]), ttftNs);
    expect(comparePaired([pairs], new Rng(1))).toMatchObject({
      pairs: 4,
      bothCompleted: 1,
      onlyBaselineCompleted: 1,
      onlyTreatmentCompleted: 1,
      neitherCompleted: 1,
      faster: 2,
      slower: 1,
      equal: 1,
      medianDifference: -1,
      meanDifference: -1,
    });
  });
});

describe("comparison", () => {
  const noise = new Rng(7);
  const base = Array.from({ length: 400 }, () => 100 + 50 * noise.uniform());

  it("shows a difference that is there and none between equal arms", () => {
    const faster = base.map((value) => value - 5 - noise.uniform());
    const same = base.map((value) => value + noise.uniform() - noise.uniform());
    const found = comparePaired([paired(base, faster)], new Rng(1));
    expect(found.verdict).toBe("faster");
    expect(found.medianInterval!.low).toBeLessThanOrEqual(found.medianDifference!);
    expect(found.medianInterval!.high).toBeGreaterThanOrEqual(found.medianDifference!);
    expect(found.hodgesLehmann).toBeCloseTo(-5.5, 1);
    expect(comparePaired([paired(faster, base)], new Rng(1)).verdict).toBe("slower");
    expect(comparePaired([paired(base, same)], new Rng(1)).verdict).toBe("no-difference-shown");
    expect(comparePaired([paired(base, base)], new Rng(1))).toMatchObject({
      verdict: "no-difference-shown",
      equal: 400,
    });
  });

  it("does not call an arm faster that fails most requests", () => {
    const sheds = base.map((value, i) => (i % 3 === 0 ? value - 50 : Infinity));
    const found = comparePaired([paired(base, sheds)], new Rng(1));
    expect(found).toMatchObject({ verdict: "slower", medianDifference: null, onlyBaselineCompleted: 266 });
    expect(found.meanDifference).toBeCloseTo(-50, 9);
  });

  it("repeats for the same seed and pools runs", () => {
    const runs = [paired(base, base.toReversed()), paired(base.toReversed(), base)];
    expect(comparePaired(runs, new Rng(3))).toEqual(comparePaired(runs, new Rng(3)));
    expect(comparePaired(runs, new Rng(3)).pairs).toBe(800);
  });

  it("shows no difference where runs disagree, however clear their sum", () => {
    const much = base.map((value) => value - 20);
    const little = base.map((value) => value + 1);
    const runs = [much, much, much, little].map((treatment) => paired(base, treatment));
    const found = comparePaired(runs, new Rng(1), { blockLength: 1 });
    expect(found.medianInterval!.high).toBeLessThan(0);
    expect(found).toMatchObject({ verdict: "no-difference-shown", runs: { negative: 3, positive: 1 } });
  });

  it("has nothing to say of nothing", () => {
    expect(comparePaired([], new Rng(1))).toMatchObject({ pairs: 0, medianInterval: null, medianDifference: null });
  });
});

describe("bootstrap", () => {
  it("covers the true mean about as often as it says", () => {
    let covered = 0;
    for (let trial = 0; trial < 200; trial++) {
      const rng = new Rng(trial);
      const values = Array.from({ length: 60 }, () => rng.uniform());
      const { low, high } = bootstrapInterval(values, "mean", rng, { resamples: 300, blockLength: 1 })!;
      if (low <= 0.5 && 0.5 <= high) covered += 1;
    }
    expect(covered).toBeGreaterThan(178);
    expect(covered).toBeLessThan(200);
  });

  it("is wider for neighbours that resemble each other than drawing them singly would make it", () => {
    const rng = new Rng(5);
    let level = 0;
    const values = Array.from({ length: 500 }, () => (level = 0.95 * level + rng.uniform() - 0.5));
    const width = (blockLength: number): number => {
      const { low, high } = bootstrapInterval(values, "median", new Rng(1), { blockLength })!;
      return high - low;
    };
    expect(width(25)).toBeGreaterThan(2 * width(1));
  });

  it("finds out how far neighbours depend on each other", () => {
    const rng = new Rng(9);
    const independent = Array.from({ length: 1000 }, () => rng.uniform());
    let level = 0;
    const dependent = Array.from({ length: 1000 }, () => (level = 0.9 * level + rng.uniform() - 0.5));
    expect(blockLengthFor(independent)).toBeLessThanOrEqual(5);
    expect(blockLengthFor(dependent)).toBeGreaterThan(15);
    expect(blockLengthFor(dependent)).toBeLessThanOrEqual(95);
    expect(blockLengthFor([1, 1, 1, 1])).toBe(1);
    expect(blockLengthFor([1])).toBe(1);
    // Infinite differences are ranked, not averaged.
    const withFailures = dependent.map((value) => (value > 1 ? Infinity : value));
    expect(bootstrapInterval(withFailures, "median", new Rng(1))!.blockLength).toBeGreaterThan(15);
  });

  it("takes the median of an even number as the mean of the middle two, and infinities as they are", () => {
    expect(medianOfSorted([1, 2, 4, 9])).toBe(3);
    expect(medianOfSorted([-Infinity, 5, Infinity])).toBe(5);
    expect(medianOfSorted([-Infinity, Infinity])).toBe(0);
    expect(medianOfSorted([])).toBeNaN();
  });
});

it("finds the Hodges–Lehmann estimate without listing all pairs", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -1000, max: 1000 }), { minLength: 1, maxLength: 40 }), (values) => {
      const sorted = Float64Array.from(values).sort();
      const means = values.flatMap((a, i) => values.slice(i).map((b) => (a + b) / 2));
      expect(hodgesLehmann(sorted)).toBeCloseTo(medianOfSorted(Float64Array.from(means).sort()), 9);
    }),
  );
});

describe("sign consistency", () => {
  it("tells agreement of all runs, and how likely chance alone gives it", () => {
    expect(signConsistency([-3, -1, -2])).toMatchObject({ negative: 3, isConsistent: true, chance: 0.25 });
    expect(signConsistency([-3, 1, -2]).isConsistent).toBe(false);
    expect(signConsistency([-3, 0, -2])).toMatchObject({ zero: 1, isConsistent: false });
    expect(signConsistency([1, 2, 3, 4, 5, 6]).chance).toBeCloseTo(0.03125, 12);
    expect(signConsistency([])).toMatchObject({ isConsistent: false, chance: 1 });
  });
});
