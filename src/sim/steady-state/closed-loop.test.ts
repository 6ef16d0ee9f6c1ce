import { describe, expect, it } from "vitest";
import { nearestConstants } from "../timing/constants.ts";
import { findGpu, type GpuSpec } from "../timing/gpus.ts";
import { findModel, type ModelShape } from "../timing/models.ts";
import { StepTimer } from "../timing/step-timer.ts";
import { type ClosedLoopClients, type ClosedLoopEngine, predictClosedLoop } from "./closed-loop.ts";

const TIMER = new StepTimer({
  model: findModel("llama-3.1-70b") as ModelShape,
  gpu: findGpu("h200") as GpuSpec,
  tensorParallel: 1,
  weights: "fp8",
  kv: "fp8",
  constants: nearestConstants("trtllm", "", "fp8", "hopper").constants,
});

const CLIENTS: ClosedLoopClients = {
  concurrency: 1,
  requests: 10,
  inputTokens: 1024,
  outputTokens: 128,
  lengthRangeRatio: 1,
  cachedInputShare: 0,
  start: "burst",
  seed: 1,
};

const ENGINE: ClosedLoopEngine = {
  maxTokensPerStep: 8192,
  maxSequences: 256,
  prefillSteps: "mixed",
  chunkedPrefill: true,
  kvPoolTokens: 400_000,
  admission: "full-input",
  batchWaitSteps: 0,
  batchWaitTokens: 7000,
  frontendNs: 4_000_000,
  frontendTokenNs: 0,
};

function prefillMs(tokens: number, cached = 0): number {
  const step = { prefillTokens: tokens, prefillPairs: tokens * (cached + tokens / 2), prefillSequences: 1 };
  return TIMER.stepPs({ ...step, decodeSequences: 0, decodeTokens: 0, contextTokens: 0, sampledRows: 1 }) / 1e9;
}

describe("predictClosedLoop", () => {
  it("gives one client its prefill and the frontend as TTFT", () => {
    expect(predictClosedLoop(TIMER, CLIENTS, ENGINE).meanTtftMs).toBeCloseTo(prefillMs(1024) + 4, 3);
  });

  it("obeys Little's law", () => {
    const seen = predictClosedLoop(
      TIMER,
      { ...CLIENTS, concurrency: 32, requests: 3200, lengthRangeRatio: 0.8 },
      ENGINE,
    );
    const residenceSeconds = (seen.meanTtftMs + seen.meanTpotMs * (128 * 0.9)) / 1000;
    expect(seen.requestsPerSecond * residenceSeconds).toBeGreaterThan(30);
    expect(seen.requestsPerSecond * residenceSeconds).toBeLessThan(33);
  });

  it("chunks a long prompt, and each chunk pays for what is cached before it", () => {
    const seen = predictClosedLoop(TIMER, { ...CLIENTS, inputTokens: 8192 }, { ...ENGINE, maxTokensPerStep: 2048 });
    const chunks = [0, 2048, 4096, 6144].reduce((sum, cached) => sum + prefillMs(2048, cached), 0);
    expect(seen.meanTtftMs).toBeGreaterThan(chunks - 40);
    expect(seen.meanTtftMs).toBeLessThan(chunks + 10);
  });

  it("holds prompts back by the batch wait", () => {
    const clients = { ...CLIENTS, concurrency: 4, requests: 40, outputTokens: 1024, lengthRangeRatio: 0.8 };
    const prompt = predictClosedLoop(TIMER, clients, ENGINE);
    const held = predictClosedLoop(TIMER, clients, { ...ENGINE, batchWaitSteps: 20 });
    const waitMs = 20 * prompt.meanTpotMs;
    expect(held.medianTtftMs - prompt.medianTtftMs).toBeGreaterThan(0.8 * waitMs);
    expect(held.medianTtftMs - prompt.medianTtftMs).toBeLessThan(1.3 * waitMs);
  });

  it("queues what the KV pool cannot hold, and every request still ends", () => {
    const clients = { ...CLIENTS, concurrency: 32, requests: 96 };
    for (const admission of ["full-input", "to-completion"] as const) {
      const roomy = predictClosedLoop(TIMER, clients, { ...ENGINE, admission });
      const tight = predictClosedLoop(TIMER, clients, { ...ENGINE, admission, kvPoolTokens: 8 * 1200 });
      expect(tight.meanTtftMs).toBeGreaterThan(3 * roomy.meanTtftMs);
      expect(tight.meanDecodeBatch).toBeLessThan(9);
      expect(tight.requestsPerSecond).toBeGreaterThan(0);
    }
  });

  it("keeps equal requests in step where prompts are computed alone", () => {
    const clients = { ...CLIENTS, concurrency: 32, requests: 320, outputTokens: 512 };
    const mixed = predictClosedLoop(TIMER, clients, ENGINE);
    const alone = predictClosedLoop(TIMER, clients, { ...ENGINE, prefillSteps: "alone" });
    expect(alone.meanTtftMs).toBeGreaterThan(1.3 * mixed.meanTtftMs);
  });

  it("computes less where prompts are cached", () => {
    const cold = predictClosedLoop(TIMER, CLIENTS, ENGINE);
    const warm = predictClosedLoop(TIMER, { ...CLIENTS, cachedInputShare: 0.9 }, ENGINE);
    expect(warm.meanTtftMs).toBeLessThan(0.7 * cold.meanTtftMs);
  });

  it("ends when a request can never be admitted", () => {
    const seen = predictClosedLoop(TIMER, CLIENTS, { ...ENGINE, kvPoolTokens: 500 });
    expect(seen.steps).toBe(0);
    expect(seen.meanTtftMs).toBeNaN();
  });

  it("jumps over decode steps instead of taking each", () => {
    const seen = predictClosedLoop(TIMER, { ...CLIENTS, outputTokens: 4096 }, ENGINE);
    expect(seen.steps).toBe(10 * 4096);
    expect(seen.jumps).toBeLessThan(50);
  });
});
