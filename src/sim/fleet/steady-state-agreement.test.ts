import { describe, expect, it } from "vitest";
import { createPolicy } from "../../core/policy/registry.ts";
import { Router } from "../../core/router.ts";
import { ClosedLoop } from "../../workload/closed-loop.ts";
import type { SessionSupply } from "../../workload/request.ts";
import { promptOf } from "../../workload/prompt.ts";
import { VLLM } from "../engine/profile.ts";
import { predictClosedLoop } from "../steady-state/closed-loop.ts";
import { nearestConstants } from "../timing/constants.ts";
import { findGpu, type GpuSpec } from "../timing/gpus.ts";
import { findModel, type ModelShape } from "../timing/models.ts";
import { StepTimer } from "../timing/step-timer.ts";
import { simulateFleet } from "./virtual-fleet.ts";

const gpu = findGpu("H100") as GpuSpec;
const { constants } = nearestConstants("vllm", "", "fp8", gpu.generation);
const model = findModel("llama-3.1-8b") as ModelShape;
const timer = new StepTimer({ model, gpu, tensorParallel: 1, weights: "fp8", kv: "fp8", constants });

const INPUT = 1024;
const OUTPUT = 200;
const REQUESTS = 320;
const CONCURRENCY = 32;

/** Prompts of one length, each with its own content. */
const supply: SessionSupply = {
  session: (ordinal) =>
    ordinal >= REQUESTS
      ? undefined
      : {
          session: ordinal,
          name: `s${ordinal}`,
          turns: [
            {
              requestId: ordinal,
              prompt: { kind: "whole", prompt: promptOf([{ id: ordinal + 1, tokens: INPUT }]) },
              outputTokens: OUTPUT,
              answerId: -ordinal - 1,
              thinkNs: 0,
            },
          ],
        },
};

describe("one worker under a closed loop", () => {
  it.each([
    ["at once", 0, 0],
    ["with a batch wait of 20 steps", 20, 0.9],
  ])("takes as long as the steady-state predictor says, which schedules on its own (%s)", (_, steps, tokensRatio) => {
    const batchWait = { batchWaitSteps: steps, batchWaitTokensRatio: tokensRatio };
    const router = new Router(createPolicy("round-robin", {}), {
      blockTokens: 16,
      maxReplicas: 1,
      maxBlocks: 40_000,
      admission: { mode: "engine" },
    });
    const limits = {
      blockTokens: 16,
      poolBlocks: 20_001,
      maxSequences: 256,
      maxTokensPerStep: 8192,
      chunkedPrefill: true,
      prefixReuse: true,
    };
    const { records, accounting, endNs } = simulateFleet({
      router,
      workers: [{ name: "a", engine: { profile: { ...VLLM, ...batchWait, asyncSchedulingDepth: 0 }, limits, timer } }],
      source: new ClosedLoop(supply, { concurrency: CONCURRENCY }),
      blockTokens: 16,
    });
    const predicted = predictClosedLoop(
      timer,
      {
        concurrency: CONCURRENCY,
        requests: REQUESTS,
        inputTokens: INPUT,
        outputTokens: OUTPUT,
        lengthRangeRatio: 1,
        cachedInputShare: 0,
        start: "burst",
        seed: 1,
      },
      {
        maxTokensPerStep: 8192,
        maxSequences: 256,
        prefillSteps: "mixed",
        chunkedPrefill: true,
        kvPoolTokens: 320_000,
        admission: "full-input",
        batchWaitSteps: steps,
        batchWaitTokens: tokensRatio * 8192,
        frontendNs: 0,
        frontendTokenNs: 0,
      },
    );
    expect(accounting.completed).toBe(REQUESTS);
    const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;
    const ttftMs = mean(records.map((r) => ((r.firstContentNs ?? 0) - r.intendedNs) / 1e6));
    const tpotMs = mean(records.map((r) => ((r.lastContentNs ?? 0) - (r.firstContentNs ?? 0)) / 1e6 / (OUTPUT - 1)));
    expect(ttftMs / predicted.meanTtftMs).toBeCloseTo(1, 2);
    expect(tpotMs / predicted.meanTpotMs).toBeCloseTo(1, 2);
    expect(REQUESTS / (endNs / 1e9) / predicted.requestsPerSecond).toBeCloseTo(1, 2);
  });
});
