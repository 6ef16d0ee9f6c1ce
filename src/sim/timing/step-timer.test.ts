import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nearestConstants, withoutGraphs } from "./constants.ts";
import { findGpu, type GpuSpec } from "./gpus.ts";
import { findModel, type ModelShape, type NumberFormat } from "./models.ts";
import { runPs } from "./step-run.ts";
import { type StepShape, StepTimer } from "./step-timer.ts";

function timer(backend: string, model: string, card: string, tensorParallel: number, eager = false): StepTimer {
  const gpu = findGpu(card) as GpuSpec;
  const weights: NumberFormat = gpu.generation === "ampere" ? "bf16" : "fp8";
  const { constants } = nearestConstants(backend, "", weights, gpu.generation);
  return new StepTimer({
    model: findModel(model) as ModelShape,
    gpu,
    tensorParallel,
    weights,
    kv: weights,
    constants: eager ? withoutGraphs(constants) : constants,
  });
}

function prefill(tokens: number, cached = 0): StepShape {
  return {
    prefillTokens: tokens,
    prefillPairs: tokens * (cached + tokens / 2),
    prefillSequences: 1,
    decodeSequences: 0,
    decodeTokens: 0,
    contextTokens: 0,
    sampledRows: 1,
  };
}

function decode(sequences: number, contextTokens: number): StepShape {
  return {
    prefillTokens: 0,
    prefillPairs: 0,
    prefillSequences: 0,
    decodeSequences: sequences,
    decodeTokens: sequences,
    contextTokens,
    sampledRows: sequences,
  };
}

const milliseconds = (ps: number): number => ps / 1e9;

describe("StepTimer", () => {
  it("makes consecutive decode steps exactly affine, with and without CUDA graphs", () => {
    const timers = [
      timer("vllm", "llama-3.1-70b", "h200", 1),
      timer("trtllm", "llama-3.1-8b", "h100", 8),
      timer("vllm", "qwen3-8b", "a100-40gb", 1, true),
    ];
    const anyTimer = fc.constantFrom(...timers);
    fc.assert(
      fc.property(
        anyTimer,
        fc.integer({ min: 1, max: 3000 }),
        fc.nat(5_000_000),
        fc.integer({ min: 1, max: 300 }),
        (one, batch, context, steps) => {
          const run = one.decodeAffine(batch, context, { aPs: 0, bPs: 0, validSteps: 0 });
          const jump = Math.min(steps, run.validSteps);
          let stepped = 0;
          for (let k = 0; k < jump; k++) stepped += one.stepPs(decode(batch, context + k * batch));
          expect(Number.isInteger(stepped)).toBe(true);
          expect(runPs(run, jump)).toBe(stepped);
        },
      ),
    );
  });

  it("says how long an affine run holds where the launch floor ends", () => {
    const eager = timer("vllm", "qwen3-8b", "a100-40gb", 1, true);
    const run = eager.decodeAffine(8, 20_000, { aPs: 0, bPs: 0, validSteps: 0 });
    expect(run.bPs).toBe(0);
    const past = 20_000 + 8 * run.validSteps;
    expect(eager.stepPs(decode(8, past))).toBeGreaterThan(run.aPs);
    expect(eager.stepPs(decode(8, past - 8))).toBe(run.aPs);
  });

  it("agrees with the hand-computed times of the published cases within 15 percent", () => {
    const cases: readonly (readonly [StepTimer, StepShape, number])[] = [
      [timer("trtllm", "llama-3.1-70b", "h100", 2), prefill(3500), 290],
      [timer("trtllm", "llama-3.1-70b", "h100", 2), decode(40, 40 * 4500), 21.8],
      [timer("trtllm", "llama-3.1-70b", "h200", 1), prefill(3500), 478],
      [timer("trtllm", "llama-3.1-70b", "h200", 1), decode(40, 40 * 4500), 27.9],
      [timer("vllm", "llama-3.1-70b", "h200", 1), prefill(8192), 1281],
      [timer("vllm", "qwen3-32b", "h100", 1), prefill(1000), 74],
      [timer("vllm", "qwen3-8b", "a100-40gb", 1, true), prefill(3500), 268],
      [timer("vllm", "qwen3-8b", "a100-40gb", 1, true), decode(40, 40 * 4500), 38.3],
    ];
    for (const [one, step, hand] of cases) {
      expect(Math.abs(milliseconds(one.stepPs(step)) / hand - 1)).toBeLessThan(0.15);
    }
  });

  it("fuses a mixed step: cheaper than prefill and decode one after the other, dearer than either", () => {
    const one = timer("trtllm", "llama-3.1-70b", "h200", 1);
    const alone = one.stepPs(prefill(512));
    const decodes = one.stepPs(decode(40, 180_000));
    const mixed = one.stepPs({
      ...prefill(512),
      decodeSequences: 40,
      decodeTokens: 40,
      contextTokens: 180_000,
      sampledRows: 41,
    });
    expect(mixed).toBeLessThan(0.9 * (alone + decodes));
    expect(mixed).toBeGreaterThan(Math.max(alone, decodes));
  });

  it("charges cached tokens only through attention", () => {
    const one = timer("vllm", "llama-3.1-70b", "h200", 1);
    const cold = one.stepPs(prefill(3500));
    const warm = one.stepPs(prefill(500, 3000));
    expect(warm).toBeLessThan(cold / 4);
    expect(warm).toBeGreaterThan(one.stepPs(prefill(500)));
  });

  it("gets faster with more GPUs, and never by more than their number", () => {
    for (const step of [prefill(4096), decode(32, 131_072)]) {
      const times = [1, 2, 4, 8].map((p) => timer("vllm", "llama-3.1-70b", "h200", p).stepPs(step));
      for (let i = 1; i < times.length; i++) {
        expect(times[i]).toBeLessThan(times[i - 1]);
        expect(times[i]).toBeGreaterThan(times[i - 1] / 2);
      }
    }
  });

  it("refuses FP8 weights on a card without FP8 units", () => {
    const gpu = findGpu("a100-80gb") as GpuSpec;
    const { constants } = nearestConstants("vllm", "", "bf16", "ampere");
    const model = findModel("qwen3-8b") as ModelShape;
    expect(() => new StepTimer({ model, gpu, tensorParallel: 1, weights: "fp8", kv: "bf16", constants })).toThrow(
      /no FP8/,
    );
  });
});
