import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Sample } from "./sample.ts";
import { FEWEST_SAMPLES, STATISTICS } from "./summary.ts";

function sampleOf(values: Iterable<number>, unreached = 0): Sample {
  const sample = new Sample();
  for (const value of values) sample.add(value);
  sample.addUnreached(unreached);
  return sample;
}

const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

describe("populations", () => {
  it("leaves failures out of completed and counts them as infinite in offered", () => {
    const { completed, offered } = sampleOf(range(900), 100).summaries(1);
    expect(completed).toMatchObject({ n: 900, mean: 449.5, p50: 449.5 });
    expect(offered).toMatchObject({ n: 1000, mean: null, p50: 499.5, p95: null, p99: null });
    expect(offered.states).toEqual({
      mean: "not-reached",
      p50: "ok",
      p90: "not-reached",
      p95: "not-reached",
      p99: "not-reached",
    });
  });

  it("gives no percentile for a population too small for it, whatever its values", () => {
    expect(sampleOf(range(999)).summaries(1).completed).toMatchObject({ p99: null, states: { p99: "too-few" } });
    expect(sampleOf(range(1000)).summaries(1).completed).toMatchObject({ p99: 989.01, states: { p99: "ok" } });
    for (const name of STATISTICS) {
      const fewest = FEWEST_SAMPLES[name];
      expect(sampleOf(range(fewest - 1)).summaries(1).completed.states[name]).toBe("too-few");
      expect(sampleOf(range(fewest)).summaries(1).completed.states[name]).toBe("ok");
    }
    expect(sampleOf([], 19).summaries(1).offered.states.p95).toBe("too-few");
  });

  it("is empty without values, not zero", () => {
    const { completed } = new Sample().summaries(1);
    expect(completed).toMatchObject({ n: 0, mean: null, p50: null, states: { mean: "too-few", p50: "too-few" } });
  });

  it("divides by the unit asked for", () => {
    expect(sampleOf([2_000_000, 4_000_000]).summaries(1_000_000).completed.mean).toBe(3);
  });
});

it("merges into exactly what one sample would have been, in any order and through plain data", () => {
  const part = fc.tuple(fc.array(fc.double({ min: 0, max: 1e12, noNaN: true })), fc.nat({ max: 5 }));
  fc.assert(
    fc.property(fc.array(part, { maxLength: 5 }), (parts) => {
      const pooled = new Sample();
      for (const [values, unreached] of parts) {
        for (const value of values) pooled.add(value);
        pooled.addUnreached(unreached);
      }
      const merged = new Sample();
      for (const [values, unreached] of parts.toReversed()) {
        merged.merge(Sample.from(sampleOf(values, unreached).toData()));
      }
      expect(merged.summaries(1)).toEqual(pooled.summaries(1));
      expect(merged.unreached).toBe(pooled.unreached);
    }),
  );
});
