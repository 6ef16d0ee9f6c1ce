import { describe, expect, it } from "vitest";
import { Rng } from "../../core/rng.ts";
import { nearestConstants } from "./constants.ts";
import { findGpu, type GpuSpec } from "./gpus.ts";
import { findModel, type ModelShape } from "./models.ts";
import {
  drawAcceptance,
  drawTokens,
  expectedTokens,
  expectedTokensByPosition,
  SpeculativeTimer,
} from "./speculation.ts";
import { type StepShape, StepTimer } from "./step-timer.ts";

function on(model: string): StepTimer {
  const { constants } = nearestConstants("trtllm", "", "fp8", "hopper");
  const gpu = findGpu("h100") as GpuSpec;
  return new StepTimer({
    model: findModel(model) as ModelShape,
    gpu,
    tensorParallel: 2,
    weights: "fp8",
    kv: "fp8",
    constants,
  });
}

function decode(sequences: number): StepShape {
  return {
    prefillTokens: 0,
    prefillPairs: 0,
    prefillSequences: 0,
    decodeSequences: sequences,
    decodeTokens: sequences,
    contextTokens: sequences * 3500,
    sampledRows: sequences,
  };
}

describe("speculative decoding", () => {
  it("expects 2.53 tokens for three drafts at 0.7 and 3.36 for four at 0.8", () => {
    expect(expectedTokens(0.7, 3)).toBeCloseTo(2.533, 3);
    expect(expectedTokens(0.8, 4)).toBeCloseTo(3.362, 3);
    expect(expectedTokens(1, 4)).toBe(5);
    expect(expectedTokensByPosition([0.85, 0.3])).toBeCloseTo(2.105, 3);
  });

  it("draws what it expects", () => {
    const rng = new Rng(3);
    let tokens = 0;
    for (let i = 0; i < 20_000; i++) tokens += drawTokens(rng, 0.7, 3);
    expect(tokens / 20_000).toBeCloseTo(2.533, 1);
  });

  it("draws acceptance rates with the mean and deviation asked for", () => {
    const rng = new Rng(4);
    const rates = Array.from({ length: 20_000 }, () => drawAcceptance(rng, 0.7, 0.1));
    const mean = rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
    const variance = rates.reduce((sum, rate) => sum + (rate - mean) ** 2, 0) / rates.length;
    expect(mean).toBeCloseTo(0.7, 2);
    expect(Math.sqrt(variance)).toBeCloseTo(0.1, 2);
    expect(drawAcceptance(rng, 0.6, 0)).toBe(0.6);
  });

  it("gains most at a small batch and less as verifying becomes compute-bound", () => {
    const target = on("llama-3.1-70b");
    const speculative = new SpeculativeTimer(target, on("llama-3.1-8b"), 3);
    const gains = [1, 16, 64].map(
      (b) => (expectedTokens(0.7, 3) * target.stepPs(decode(b))) / speculative.stepPs(decode(b)),
    );
    expect(gains[0]).toBeGreaterThan(1.2);
    expect(gains[0]).toBeGreaterThan(gains[2]);
    expect(Number.isInteger(speculative.stepPs(decode(7)))).toBe(true);
  });

  it("takes a prompt through both models once", () => {
    const target = on("llama-3.1-70b");
    const draft = on("llama-3.1-8b");
    const prompt = {
      ...decode(0),
      prefillTokens: 2048,
      prefillPairs: 2048 * 1024,
      prefillSequences: 1,
      sampledRows: 1,
    };
    expect(new SpeculativeTimer(target, draft, 3).stepPs(prompt)).toBe(target.stepPs(prompt) + draft.stepPs(prompt));
  });
});
