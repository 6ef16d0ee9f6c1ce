import { hashString } from "../../core/rng.ts";
import { planMemory, poolRuleOf } from "../memory-plan.ts";
import type { ClosedLoopClients, ClosedLoopEngine } from "../steady-state/closed-loop.ts";
import { type ConstantsCell, nearestConstants } from "../timing/constants.ts";
import { findGpu, type GpuSpec } from "../timing/gpus.ts";
import { findModel, type ModelShape, type NumberFormat } from "../timing/models.ts";
import type { TimingProfile } from "../timing/step-timer.ts";
import { hasDocumentedClient, type SiliconRow } from "./silicon-row.ts";

/** All that predicts one row. */
export interface RowSettings {
  readonly cell: ConstantsCell;
  readonly profile: TimingProfile;
  readonly clients: ClosedLoopClients;
  readonly engine: ClosedLoopEngine;
}

/**
 * What is taken for granted about a run that the file does not say. Documented runs: their launch scripts
 * (SemiAnalysisAI/InferenceX before commit 2582bce). The other rows come from two campaigns without scripts, told apart
 * by their lengths (1024, 2048, 4096 or whole thousands); what is set for them was read off those rows.
 */
interface RunAssumptions {
  readonly requestsPerSlot: number;
  readonly lengthRangeRatio: number;
  readonly start: ClosedLoopClients["start"];
  /** Prompts of the second campaign repeat: vLLM's and TensorRT-LLM's TPOT leaves no room for computing them whole. */
  readonly cachedInputShare: number;
  readonly kv: NumberFormat;
}

const FRONTEND_NS = 4_000_000;

/** The settings that predict a row, or the reason why it is not covered. */
export function settingsOf(row: SiliconRow, cells?: readonly ConstantsCell[]): RowSettings | string {
  const model = findModel(row.model);
  if (model === undefined) return `the model ${row.model} is not modelled`;
  const gpu = findGpu(row.system);
  if (gpu === undefined) return `the GPU ${row.system} is not modelled`;
  if (row.precision !== "bf16" && row.precision !== "fp8") return `${row.precision} weights are not modelled`;
  const weights: NumberFormat = row.precision;
  if (weights === "fp8" && gpu.fp8FlopsPerSecond === 0) return `${gpu.name} has no FP8 matrix units`;
  const cell = nearestConstants(row.backend, row.backendVersion, weights, gpu.generation, cells);
  const assumed = assumptionsFor(row, weights);
  return {
    cell,
    profile: { model, gpu, tensorParallel: row.tensorParallel, weights, kv: assumed.kv, constants: cell.constants },
    clients: {
      concurrency: row.concurrency,
      requests: row.concurrency * assumed.requestsPerSlot,
      inputTokens: row.inputTokens,
      outputTokens: row.outputTokens,
      lengthRangeRatio: assumed.lengthRangeRatio,
      cachedInputShare: assumed.cachedInputShare,
      start: assumed.start,
      seed: hashString(row.id),
    },
    engine: engineOf(row, model, gpu, weights, assumed.kv),
  };
}

function assumptionsFor(row: SiliconRow, weights: NumberFormat): RunAssumptions {
  if (hasDocumentedClient(row)) {
    // The H100 runs only fit a pool of BF16 size, although a later script asks for FP8.
    const bf16Kv = weights === "bf16" || (row.backend === "vllm" && row.system.startsWith("h100"));
    return {
      requestsPerSlot: 10,
      lengthRangeRatio: 0.8,
      start: "burst",
      cachedInputShare: 0,
      kv: bf16Kv ? "bf16" : "fp8",
    };
  }
  const secondCampaign = row.inputTokens % 1000 === 0;
  return {
    requestsPerSlot: 8,
    lengthRangeRatio: 1,
    // SGLang computes prompts before it decodes, which keeps equal requests in step; the others drift apart.
    start: row.backend === "sglang" && !secondCampaign ? "burst" : "spread",
    cachedInputShare: secondCampaign ? (REPEATED_PROMPT_SHARE[row.backend] ?? 0) : 0,
    kv: weights,
  };
}

const REPEATED_PROMPT_SHARE: Readonly<Record<string, number>> = { vllm: 0.8, trtllm: 0.65 };

function engineOf(
  row: SiliconRow,
  model: ModelShape,
  gpu: GpuSpec,
  weights: NumberFormat,
  kv: NumberFormat,
): ClosedLoopEngine {
  const trt = row.backend === "trtllm";
  const tokensPerSequence = row.inputTokens + row.outputTokens;
  const plan = planMemory({
    gpu,
    tensorParallel: row.tensorParallel,
    model,
    weights,
    kv,
    memoryFraction: 0.9,
    poolRule: poolRuleOf(row.backend),
    blockTokens: trt ? 32 : 16,
    tokensPerSequence,
  });
  const maxTokensPerStep = trt ? 16_384 : 8192;
  // The launch script holds prompts back for 1k/1k below eight GPUs.
  const shortRun = row.inputTokens === 1024 && row.outputTokens === 1024 && row.tensorParallel < 8;
  return {
    maxTokensPerStep,
    maxSequences: 2048,
    prefillSteps: row.backend === "sglang" ? "alone" : "mixed",
    chunkedPrefill: !trt,
    // The row was measured, so at least one sequence fitted, whatever the plan says.
    kvPoolTokens: Math.max(plan.poolTokens, tokensPerSequence + 1),
    admission: row.backend === "vllm" ? "full-input" : "to-completion",
    batchWaitSteps: trt && shortRun && hasDocumentedClient(row) ? 20 : 0,
    batchWaitTokens: 0.9 * maxTokensPerStep,
    frontendNs: FRONTEND_NS,
    frontendTokenNs: 0,
  };
}
