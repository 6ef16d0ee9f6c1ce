import { describe, expect, it } from "vitest";
import { type MemoryPlanInput, memoryPlanLines, modelWeightBytes, planMemory, poolRuleOf } from "./memory-plan.ts";
import { findGpu, type GpuSpec } from "./timing/gpus.ts";
import { findModel, type ModelShape } from "./timing/models.ts";

const LLAMA_70B = findModel("llama-3.1-70b") as ModelShape;
const LLAMA_8B = findModel("llama-3.1-8b") as ModelShape;

/** The brief's case: two H100 per replica, 70B and an 8B draft in FP8, round numbers as the brief has them. */
const BRIEF: MemoryPlanInput = {
  gpu: findGpu("h100") as GpuSpec,
  tensorParallel: 2,
  model: LLAMA_70B,
  weights: "fp8",
  kv: "fp8",
  draft: { model: LLAMA_8B, weights: "fp8", kv: "fp8" },
  memoryFraction: 0.85,
  poolRule: "of-total",
  blockTokens: 32,
  tokensPerSequence: 3930,
  hbmBytes: 80e9,
  weightBytes: 70e9,
  draftWeightBytes: 8e9,
  overheadBytes: 5e9,
};

describe("planMemory", () => {
  it("prints the brief's budget: 68.0 / 35.0 / 4.0 / 5.0 / 24.0 GB and 53 sequences with their length", () => {
    const lines = memoryPlanLines(planMemory(BRIEF));
    expect(lines.slice(0, 5).map((line) => line.match(/([\d.]+) GB$/)?.[1])).toEqual([
      "68.0",
      "35.0",
      "4.0",
      "5.0",
      "24.0",
    ]);
    expect(lines.at(-1)).toBe("concurrent sequences: 53, at 3930 tokens each");
  });

  it("computes weights from the model where none are given, embeddings in BF16", () => {
    expect(modelWeightBytes(LLAMA_70B, "fp8") / 1e9).toBeCloseTo(72.65, 1);
    expect(modelWeightBytes(LLAMA_8B, "bf16") / 1e9).toBeCloseTo(16.06, 1);
  });

  it("takes the fraction of all memory or of what is free, by the engine's rule", () => {
    const alone: MemoryPlanInput = {
      gpu: findGpu("h200") as GpuSpec,
      tensorParallel: 1,
      model: LLAMA_70B,
      weights: "fp8",
      kv: "fp8",
      memoryFraction: 0.9,
      poolRule: "of-total",
      blockTokens: 32,
      tokensPerSequence: 5000,
    };
    const ofTotal = planMemory(alone);
    const ofFree = planMemory({ ...alone, poolRule: "of-free" });
    expect(ofTotal.poolTokens).toBeGreaterThan(345_000);
    expect(ofTotal.poolTokens).toBeLessThan(360_000);
    expect(ofFree.poolTokens).toBeGreaterThan(395_000);
    expect(ofFree.poolTokens).toBeLessThan(410_000);
    expect(memoryPlanLines(ofFree)[4]).toContain("0.90 of what is free");
  });

  it("uses the pool an engine's log gives, rounded down to whole blocks", () => {
    const plan = planMemory({ ...BRIEF, poolTokens: 100_010 });
    expect([plan.poolTokens, plan.poolBlocks]).toEqual([100_000, 3125]);
  });

  it("refuses what cannot fit with the arithmetic and the next fraction to try", () => {
    const plan = planMemory({ ...BRIEF, tensorParallel: 1 });
    expect(plan.problem?.arithmetic).toBe(
      "80.0 GB x 0.85 = 68.0 GB usable; 70.0 GB weights + 8.0 GB draft + 5.0 GB overhead leave -15.0 GB for the KV pool; one sequence of 3930 tokens needs 0.9 GB",
    );
    expect(plan.problem?.nextMemoryFraction).toBe(0.8);
    expect(plan.problem?.nextFractionFits).toBe(false);
    expect(memoryPlanLines(plan).at(-1)).toMatch(/next memory fraction to try: 0\.80; no fraction is enough/);
  });

  it("suggests the next lower fraction where activations do not fit beside the pool", () => {
    const plan = planMemory({ ...BRIEF, activationPeakBytes: 14e9 });
    expect(plan.problem?.arithmetic).toContain("activations of 14.0 GB exceed what is left by 2.0 GB");
    expect(plan.problem?.nextMemoryFraction).toBe(0.8);
    expect(plan.problem?.nextFractionFits).toBe(true);
  });

  it("knows whose fraction is of what", () => {
    expect(["vllm", "sglang", "trtllm"].map(poolRuleOf)).toEqual(["of-total", "of-total", "of-free"]);
  });

  it("suggests a higher fraction where only a larger pool helps", () => {
    const plan = planMemory({ ...BRIEF, memoryFraction: 0.5 });
    expect(plan.problem?.nextMemoryFraction).toBe(0.6);
    expect(plan.problem?.nextFractionFits).toBe(true);
  });

  it("rejects a fraction that is none", () => {
    expect(() => planMemory({ ...BRIEF, memoryFraction: 1.2 })).toThrow(/above 0 and at most 1/);
  });
});
