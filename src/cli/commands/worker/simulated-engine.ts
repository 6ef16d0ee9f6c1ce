import { WarmpathError } from "../../../core/errors.ts";
import { fleetMemory } from "../../../lab/experiment/memory.ts";
import type { FleetConfig } from "../../../lab/experiment/types.ts";
import type { WorkerOptions } from "../../../sim/fleet/types.ts";
import type { MemoryPlan } from "../../../sim/memory-plan.ts";
import { findModel, type NumberFormat } from "../../../sim/timing/models.ts";
import { workerEngine } from "../run/simulated-fleet.ts";
import type { WorkerSettings } from "./settings.ts";

/** An engine as its flags describe it, and the memory it has. */
export interface SimulatedEngine {
  readonly engine: WorkerOptions["engine"];
  readonly plan: MemoryPlan;
  readonly kv: NumberFormat;
}

/** Tokens in a block where no flag says so: what each engine does by itself, and for SGLang a page that is not one token. */
const BLOCK_TOKENS: Readonly<Record<WorkerSettings["engine"], number>> = { vllm: 16, trtllm: 32, sglang: 16 };

/** How far requests differ in how predictable they are, unless nearly all or none of them is. */
const ACCEPTANCE_DEVIATION = 0.1;

/** Flags whose names differ from those in the engine's own complaints. */
const FLAG_NAMES: readonly (readonly [pattern: RegExp, flag: string])[] = [
  [/fleet\.engine: /g, ""],
  [/maxTokensPerStep/g, "--max-num-tokens"],
  [/maxSequences/g, "--max-batch-size"],
  [/blockTokens/g, "--kv-block-size"],
  [/poolBlocks/g, "the KV pool in blocks"],
];

/** The memory of one GPU under these flags, whether or not it is enough. */
export function memoryOf(settings: WorkerSettings): MemoryPlan {
  return fleetMemory(fleetOf(settings), settings.maxSeqLen);
}

/** The engine that the flags describe; throws with one line, and the arithmetic, where it could not run. */
export function simulatedEngine(settings: WorkerSettings): SimulatedEngine {
  const fleet = fleetOf(settings);
  const plan = memoryOf(settings);
  requireRoom(plan, settings);
  try {
    const { profile, ...engine } = workerEngine(fleet, settings.maxSeqLen, settings.seed);
    const asyncSchedulingDepth = settings.disableOverlapScheduler ? 0 : profile.asyncSchedulingDepth;
    return { engine: { ...engine, profile: { ...profile, asyncSchedulingDepth } }, plan, kv: fleet.kv };
  } catch (error) {
    if (!WarmpathError.isInstance(error)) throw error;
    const message = FLAG_NAMES.reduce((words, [pattern, flag]) => words.replaceAll(pattern, flag), error.message);
    throw new WarmpathError("WP_INVALID_INPUT", message, { cause: error });
  }
}

function requireRoom({ problem }: MemoryPlan, settings: WorkerSettings): void {
  if (problem === undefined) return;
  const { nextMemoryFraction, nextFractionFits, arithmetic } = problem;
  const what = `${settings.modelPath} does not fit ${settings.tensorParallelSize} x ${settings.gpu}`;
  const advice = nextFractionFits
    ? `try --free-gpu-memory-fraction ${nextMemoryFraction.toFixed(2)}`
    : "no fraction is enough: use more GPUs, a smaller model or a shorter --max-seq-len";
  throw new WarmpathError("WP_INVALID_INPUT", `${what}: ${arithmetic}; ${advice}`);
}

function fleetOf(settings: WorkerSettings): FleetConfig {
  const profile = settings.engine;
  const weights = settings.quantization ?? formatInName(settings.modelPath);
  const draft = settings.speculativeModel;
  const dtype = settings.kvCacheDtype;
  return {
    model: modelName(settings.modelPath),
    gpu: settings.gpu,
    tensorParallel: settings.tensorParallelSize,
    workers: [1],
    engine: {
      profile,
      version: "",
      maxSequences: settings.maxBatchSize,
      maxTokensPerStep: settings.maxNumTokens,
      chunkedPrefill: settings.enableChunkedPrefill,
      prefixReuse: settings.enableBlockReuse,
      eager: false,
    },
    weights,
    // As with the engines, `auto` is the format of activations, which FP8 checkpoints leave at BF16.
    kv: dtype === "auto" ? "bf16" : dtype,
    blockTokens: settings.kvBlockSize ?? BLOCK_TOKENS[profile],
    memoryFraction: settings.freeGpuMemoryFraction,
    kvPoolTokens: settings.kvPoolTokens,
    memory: {},
    speculation:
      draft === undefined
        ? undefined
        : {
            model: modelName(draft),
            weights: formatInName(draft),
            kv: dtype === "auto" ? "bf16" : dtype,
            drafts: settings.numSpeculativeTokens,
            acceptanceMean: settings.speculativeAcceptance,
            acceptanceDeviation:
              settings.speculativeAcceptanceDeviation ?? usualDeviation(settings.speculativeAcceptance),
          },
  };
}

/** A Beta distribution is never as wide as a coin that falls with the same mean. */
function usualDeviation(mean: number): number {
  return Math.min(ACCEPTANCE_DEVIATION, Math.sqrt(mean * (1 - mean)) / 2);
}

/** Checkpoints say in their name when they are quantized. */
function formatInName(path: string): NumberFormat {
  return /fp8/i.test(path) ? "fp8" : "bf16";
}

function modelName(path: string): string {
  return findModel(path)?.name ?? path;
}
