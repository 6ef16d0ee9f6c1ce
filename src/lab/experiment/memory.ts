import { WarmpathError } from "../../core/errors.ts";
import { type MemoryPlan, planMemory, poolRuleOf } from "../../sim/memory-plan.ts";
import { findGpu, type GpuSpec } from "../../sim/timing/gpus.ts";
import { findModel, type ModelShape } from "../../sim/timing/models.ts";
import type { FleetConfig } from "./types.ts";

/** Lays out the memory of one GPU of the fleet; `tokensPerSequence` is the workload's, unless the file has its own. */
export function fleetMemory(fleet: FleetConfig, tokensPerSequence: number): MemoryPlan {
  const { memory, speculation } = fleet;
  const { poolRule, hbmBytes, weightBytes, draftWeightBytes, overheadBytes, activationPeakBytes } = memory;
  return planMemory({
    gpu: requireGpu(fleet.gpu),
    tensorParallel: fleet.tensorParallel,
    model: requireModel(fleet.model),
    weights: fleet.weights,
    kv: fleet.kv,
    memoryFraction: fleet.memoryFraction,
    poolRule: poolRule ?? poolRuleOf(fleet.engine.profile),
    blockTokens: fleet.blockTokens,
    tokensPerSequence: memory.tokensPerSequence ?? tokensPerSequence,
    ...(speculation === undefined
      ? {}
      : { draft: { model: requireModel(speculation.model), weights: speculation.weights, kv: speculation.kv } }),
    ...(hbmBytes === undefined ? {} : { hbmBytes }),
    ...(weightBytes === undefined ? {} : { weightBytes }),
    ...(draftWeightBytes === undefined ? {} : { draftWeightBytes }),
    ...(overheadBytes === undefined ? {} : { overheadBytes }),
    ...(activationPeakBytes === undefined ? {} : { activationPeakBytes }),
    ...(fleet.kvPoolTokens === undefined ? {} : { poolTokens: fleet.kvPoolTokens }),
  });
}

/** The plan, or one line with the arithmetic and the next fraction to try where it cannot run. */
export function requireFit(plan: MemoryPlan, fleet: Pick<FleetConfig, "model" | "gpu" | "tensorParallel">): MemoryPlan {
  const { problem } = plan;
  if (problem === undefined) return plan;
  const what = `${fleet.model} does not fit ${fleet.tensorParallel} x ${fleet.gpu}`;
  const advice = problem.nextFractionFits
    ? `try memoryFraction ${problem.nextMemoryFraction.toFixed(2)}`
    : `no memoryFraction is enough (next lower: ${problem.nextMemoryFraction.toFixed(2)}): use more GPUs, a smaller model or shorter sequences`;
  throw new WarmpathError("WP_INVALID_INPUT", `fleet.memoryFraction: ${what}: ${problem.arithmetic}; ${advice}`);
}

/** The model of a name that the schema has let through. */
export function requireModel(name: string): ModelShape {
  return findModel(name) ?? unknown("model", name);
}

/** The card of a name that the schema has let through. */
export function requireGpu(name: string): GpuSpec {
  return findGpu(name) ?? unknown("gpu", name);
}

function unknown(what: string, name: string): never {
  throw new WarmpathError("WP_INVALID_INPUT", `fleet.${what}: ${name} is not known`);
}
