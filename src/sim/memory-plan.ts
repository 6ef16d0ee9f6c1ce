import { WarmpathError } from "../core/errors.ts";
import type { GpuSpec } from "./timing/gpus.ts";
import {
  bytesOf,
  kvBytesPerTokenPerGpu,
  linearParameters,
  type ModelShape,
  type NumberFormat,
} from "./timing/models.ts";

/**
 * What a memory fraction is a fraction of. vLLM and SGLang: of all memory, weights and activations included.
 * TensorRT-LLM: of what is free once the model is loaded.
 */
export type PoolRule = "of-total" | "of-free";

/** What is placed on the GPUs of one replica. Bytes that are given replace those computed from the model. */
export interface MemoryPlanInput {
  readonly gpu: GpuSpec;
  readonly tensorParallel: number;
  readonly model: ModelShape;
  readonly weights: NumberFormat;
  readonly kv: NumberFormat;
  readonly draft?: { readonly model: ModelShape; readonly weights: NumberFormat; readonly kv: NumberFormat };
  readonly memoryFraction: number;
  readonly poolRule: PoolRule;
  readonly blockTokens: number;
  /** Prompt and output of one sequence as the workload has them. */
  readonly tokensPerSequence: number;
  readonly hbmBytes?: number;
  /** Of the whole model, before it is split. */
  readonly weightBytes?: number;
  readonly draftWeightBytes?: number;
  /** CUDA context, communication buffers and activations on one GPU. */
  readonly overheadBytes?: number;
  /** Peak of activations that `overheadBytes` does not count and that what the pool leaves must hold. */
  readonly activationPeakBytes?: number;
  /** Tokens of the pool where an engine's log gives them; nothing is computed then. */
  readonly poolTokens?: number;
}

/** Memory of one GPU, in bytes, and what its KV pool holds. */
export interface MemoryPlan {
  readonly hbmBytes: number;
  /** What the engine may use: the fraction of all memory, or all of it where the fraction is of the free part. */
  readonly usableBytes: number;
  readonly weightBytes: number;
  readonly draftWeightBytes: number;
  readonly overheadBytes: number;
  readonly poolBytes: number;
  readonly bytesPerToken: number;
  readonly poolTokens: number;
  readonly poolBlocks: number;
  readonly tokensPerSequence: number;
  readonly sequences: number;
  readonly memoryFraction: number;
  readonly poolRule: PoolRule;
  /** What is left beside weights, overhead and pool once activations peak; negative is out of memory. */
  readonly headroomBytes: number;
  readonly problem?: MemoryProblem;
}

/** Why a plan cannot run, and what to try. */
export interface MemoryProblem {
  readonly arithmetic: string;
  readonly nextMemoryFraction: number;
  /** False where no fraction helps, and only more GPUs, a smaller model or shorter sequences do. */
  readonly nextFractionFits: boolean;
}

/** The rule that a backend's own memory fraction follows. */
export function poolRuleOf(backend: string): PoolRule {
  return backend === "trtllm" ? "of-free" : "of-total";
}

const DEFAULT_OVERHEAD_BYTES = 5e9;
const FRACTION_STEP = 0.05;

/** Bytes of all weights: linear layers in their own format, embeddings and LM head in BF16, as checkpoints keep them. */
export function modelWeightBytes(model: ModelShape, weights: NumberFormat): number {
  const linear = linearParameters(model);
  return linear * bytesOf(weights) + (model.parameterCount - linear) * 2;
}

/** Lays out one GPU's memory; a plan that cannot run comes back with its `problem`. */
export function planMemory(input: MemoryPlanInput): MemoryPlan {
  if (!(input.memoryFraction > 0 && input.memoryFraction <= 1)) {
    throw new WarmpathError(
      "WP_INVALID_INPUT",
      `memory fraction must be above 0 and at most 1, got ${input.memoryFraction}`,
    );
  }
  const plan = layOut(input, input.memoryFraction);
  if (fits(plan)) return plan;
  return { ...plan, problem: explain(input, plan) };
}

function fits(plan: MemoryPlan): boolean {
  return plan.sequences >= 1 && plan.headroomBytes >= 0;
}

function layOut(input: MemoryPlanInput, memoryFraction: number): MemoryPlan {
  const { gpu, tensorParallel, model, draft, poolRule, tokensPerSequence } = input;
  const hbmBytes = input.hbmBytes ?? gpu.memoryBytes;
  const weightBytes = (input.weightBytes ?? modelWeightBytes(model, input.weights)) / tensorParallel;
  const draftWeightBytes =
    draft === undefined ? 0 : (input.draftWeightBytes ?? modelWeightBytes(draft.model, draft.weights)) / tensorParallel;
  const overheadBytes = input.overheadBytes ?? DEFAULT_OVERHEAD_BYTES;
  const loaded = weightBytes + draftWeightBytes + overheadBytes;
  const usableBytes = poolRule === "of-total" ? hbmBytes * memoryFraction : hbmBytes;
  const computed = poolRule === "of-total" ? usableBytes - loaded : (hbmBytes - loaded) * memoryFraction;
  const bytesPerToken =
    kvBytesPerTokenPerGpu(model, input.kv, tensorParallel) +
    (draft === undefined ? 0 : kvBytesPerTokenPerGpu(draft.model, draft.kv, tensorParallel));
  const poolBytes = input.poolTokens === undefined ? computed : input.poolTokens * bytesPerToken;
  const poolBlocks = Math.max(0, Math.floor(poolBytes / bytesPerToken / input.blockTokens));
  const poolTokens = poolBlocks * input.blockTokens;
  return {
    hbmBytes,
    usableBytes,
    weightBytes,
    draftWeightBytes,
    overheadBytes,
    poolBytes,
    bytesPerToken,
    poolTokens,
    poolBlocks,
    tokensPerSequence,
    sequences: Math.floor(poolTokens / tokensPerSequence),
    memoryFraction,
    poolRule,
    headroomBytes: hbmBytes - loaded - Math.max(0, poolBytes) - (input.activationPeakBytes ?? 0),
  };
}

function explain(input: MemoryPlanInput, plan: MemoryPlan): MemoryProblem {
  const rounded = (fraction: number): number => Math.round(fraction * 100) / 100;
  const works = (fraction: number): boolean => fits(layOut(input, fraction));
  const lower = rounded(input.memoryFraction - FRACTION_STEP);
  let next = lower;
  // Lower first, because too little room for activations is the usual cause; a larger pool only where that is the cure.
  for (let fraction = lower; fraction > 0 && !works(next); fraction = rounded(fraction - FRACTION_STEP))
    next = fraction;
  if (!works(next)) {
    next = lower;
    for (
      let fraction = rounded(input.memoryFraction + FRACTION_STEP);
      fraction <= 0.95;
      fraction = rounded(fraction + FRACTION_STEP)
    ) {
      if (works(fraction)) {
        next = fraction;
        break;
      }
    }
  }
  const sum = `${gigabytes(plan.weightBytes)} weights + ${gigabytes(plan.draftWeightBytes)} draft + ${gigabytes(plan.overheadBytes)} overhead`;
  const need = `one sequence of ${plan.tokensPerSequence} tokens needs ${gigabytes(plan.tokensPerSequence * plan.bytesPerToken)}`;
  const room =
    plan.poolRule === "of-total"
      ? `${gigabytes(plan.hbmBytes)} x ${plan.memoryFraction} = ${gigabytes(plan.usableBytes)} usable`
      : `${plan.memoryFraction} of what ${gigabytes(plan.hbmBytes)} leaves free`;
  const peak =
    plan.headroomBytes >= 0 || plan.sequences < 1
      ? ""
      : `; activations of ${gigabytes(input.activationPeakBytes ?? 0)} exceed what is left by ${gigabytes(-plan.headroomBytes)}`;
  return {
    arithmetic: `${room}; ${sum} leave ${gigabytes(plan.poolBytes)} for the KV pool; ${need}${peak}`,
    nextMemoryFraction: next,
    nextFractionFits: works(next),
  };
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}

/** The plan as lines for a person, per GPU. */
export function memoryPlanLines(plan: MemoryPlan): string[] {
  const line = (label: string, bytes: number): string => `${label.padEnd(34)}${gigabytes(bytes).padStart(10)}`;
  const usable =
    plan.poolRule === "of-total"
      ? `usable HBM (${gigabytes(plan.hbmBytes)} x ${plan.memoryFraction.toFixed(2)})`
      : `HBM`;
  const pool = plan.poolRule === "of-total" ? "KV pool" : `KV pool (${plan.memoryFraction.toFixed(2)} of what is free)`;
  const lines = [
    line(usable, plan.usableBytes),
    line("weights", plan.weightBytes),
    line("draft weights", plan.draftWeightBytes),
    line("overhead (context, activations)", plan.overheadBytes),
    line(pool, plan.poolBytes),
    `KV pool holds ${plan.poolTokens} tokens in ${plan.poolBlocks} blocks, ${plan.bytesPerToken} bytes per token and GPU`,
    `concurrent sequences: ${plan.sequences}, at ${plan.tokensPerSequence} tokens each`,
  ];
  if (plan.problem !== undefined) {
    const { arithmetic, nextMemoryFraction, nextFractionFits } = plan.problem;
    const caveat = nextFractionFits
      ? ""
      : "; no fraction is enough: use more GPUs, a smaller model or shorter sequences";
    lines.push(`does not fit: ${arithmetic}; next memory fraction to try: ${nextMemoryFraction.toFixed(2)}${caveat}`);
  }
  return lines;
}
