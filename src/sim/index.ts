/** `warmpath/sim`: engines and a fleet in virtual time, how long their steps take, and what fits on their GPUs. */
export type { DuplicateEvents } from "./engine/block-cache.ts";
export { Engine } from "./engine/engine.ts";
export type { EngineEffects, EngineOptions, StepDuration } from "./engine/engine-options.ts";
export type { EngineFinish, EngineGrowth, EngineRequest, EngineSignal } from "./engine/engine-request.ts";
export type { EngineStats } from "./engine/engine-stats.ts";
export type { TimedKvEvent } from "./engine/kv-event-log.ts";
export {
  ENGINE_PROFILES,
  type EngineLimits,
  type EngineProfile,
  SGLANG,
  type SpeculationLimits,
  TRTLLM,
  VLLM,
  engineProfile,
  requireRunnable,
} from "./engine/profile.ts";
export { EventClass, EventQueue } from "./event-queue.ts";
export { type ChannelOptions, IDEAL_CHANNEL } from "./fleet/signal-channel.ts";
export type { FleetDelays, FleetOptions, FleetResult, WorkerOptions, WorkerSummary } from "./fleet/types.ts";
export { simulateFleet } from "./fleet/virtual-fleet.ts";
export {
  type MemoryPlan,
  type MemoryPlanInput,
  type MemoryProblem,
  type PoolRule,
  memoryPlanLines,
  modelWeightBytes,
  planMemory,
  poolRuleOf,
} from "./memory-plan.ts";
export { type ConstantsCell, CONSTANTS, findConstants, nearestConstants, withoutGraphs } from "./timing/constants.ts";
export { GPUS, type GpuSpec, findGpu } from "./timing/gpus.ts";
export {
  MODELS,
  type ModelShape,
  type NumberFormat,
  findModel,
  kvBytesPerToken,
  kvBytesPerTokenPerGpu,
} from "./timing/models.ts";
export { SpeculativeTimer, expectedTokens, expectedTokensByPosition } from "./timing/speculation.ts";
export { StepClock, runPs, stepsToCover } from "./timing/step-run.ts";
export {
  type DecodeAffine,
  type StepShape,
  StepTimer,
  type TimingConstants,
  type TimingProfile,
} from "./timing/step-timer.ts";
