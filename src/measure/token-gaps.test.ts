import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TokenTimes } from "../core/request-record.ts";
import { DurationHistogram } from "./duration-histogram.ts";
import { addGaps, chunkCount, chunkTimesNs, gapCounts } from "./token-gaps.ts";

const runs = (...numbers: number[][]): TokenTimes => ({ form: "runs", runs: Float64Array.from(numbers.flat()) });

function countsOf(times: TokenTimes): ReturnType<DurationHistogram["toGapCounts"]> {
  const histogram = new DurationHistogram();
  addGaps(times, histogram);
  return histogram.toGapCounts();
}

/** Runs that follow each other as an engine's do: mostly without a pause, remainders carried. */
const engineRuns = fc
  .array(
    fc.record({
      firstPs: fc.integer({ min: 2_000_000, max: 40_000_000_000 }),
      growthPs: fc.integer({ min: 0, max: 3_000_000 }),
      steps: fc.integer({ min: 1, max: 40 }),
      pauseNs: fc.constantFrom(0, 0, 0, 12_345_678),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((parts) => {
    let ns = 5_000_000_000;
    let remainderPs = 0;
    return parts.map(({ firstPs, growthPs, steps, pauseNs }) => {
      if (pauseNs > 0) {
        ns += pauseNs;
        remainderPs = 0;
      }
      const run = [ns, remainderPs, firstPs, growthPs, steps];
      const total = remainderPs + steps * firstPs + growthPs * ((steps * (steps - 1)) / 2);
      ns += Math.floor(total / 1000);
      remainderPs = total % 1000;
      return run;
    });
  });

/** The same steps, one run each. */
function stepped(parts: readonly number[][]): number[][] {
  return parts.flatMap(([startNs, remainderPs, firstPs, growthPs, steps]) => {
    let ns = startNs;
    let remainder = remainderPs;
    return Array.from({ length: steps }, (_, i) => {
      const run = [ns, remainder, firstPs + growthPs * i, 0, 1];
      const total = remainder + firstPs + growthPs * i;
      ns += Math.floor(total / 1000);
      remainder = total % 1000;
      return run;
    });
  });
}

describe("runs of steps", () => {
  it("arrive where stepping through them says", () => {
    fc.assert(
      fc.property(engineRuns, (parts) => {
        expect(chunkTimesNs(runs(...parts))).toEqual(chunkTimesNs(runs(...stepped(parts))));
      }),
    );
  });

  it("have the gaps of the same steps in runs of one, bit for bit", () => {
    fc.assert(
      fc.property(engineRuns, (parts) => {
        expect(countsOf(runs(...parts))).toEqual(countsOf(runs(...stepped(parts))));
      }),
    );
  });

  it("have the number, the sum and (within a bucket) the distribution of the gaps between expanded chunks", () => {
    fc.assert(
      fc.property(engineRuns, (parts) => {
        const times = runs(...parts);
        const timesNs = chunkTimesNs(times)!;
        const expanded = new DurationHistogram();
        addGaps({ form: "chunks", timesNs }, expanded);
        const direct = new DurationHistogram();
        addGaps(times, direct);
        expect(direct.count).toBe(expanded.count);
        expect(direct.count).toBe(chunkCount(times) - 1);
        expect(direct.toGapCounts().sumNs).toBe(expanded.toGapCounts().sumNs);
        if (direct.count === 0) return;
        const exact = expanded.percentileNs(0.9);
        expect(Math.abs(direct.percentileNs(0.9) - exact)).toBeLessThanOrEqual(exact * 0.002 + 2);
      }),
    );
  });
});

it("counts a pause as one long gap", () => {
  const times = runs([0, 0, 0, 0, 1], [50_000, 0, 10_000_000, 0, 2]);
  expect(chunkTimesNs(times)).toEqual(Float64Array.of(0, 60_000, 70_000));
  const counts = countsOf(times);
  expect(counts).toMatchObject({ sumNs: 70_000, minNs: 10_000, maxNs: 60_000 });
  expect(counts.bucketCounts.filter((_, i) => i % 2 === 1)).toEqual([1, 1]);
});

it("knows the number of chunks but not their times where only gaps were kept", () => {
  const times: TokenTimes = { form: "chunks", timesNs: Float64Array.of(10, 20, 30) };
  const gaps: TokenTimes = { form: "gaps", gaps: gapCounts(times, new DurationHistogram()) };
  expect(chunkCount(gaps)).toBe(3);
  expect(chunkTimesNs(gaps)).toBeUndefined();
});

it("keeps the same statistics when only gaps are kept", () => {
  fc.assert(
    fc.property(engineRuns, (parts) => {
      const times = runs(...parts);
      const scratch = new DurationHistogram();
      scratch.add(99);
      expect(countsOf({ form: "gaps", gaps: gapCounts(times, scratch) })).toEqual(countsOf(times));
    }),
  );
});
