import { NS_PER_MS, NS_PER_SECOND } from "../../../core/clock.ts";
import { WarmpathError } from "../../../core/errors.ts";
import { createPolicy } from "../../../core/policy/registry.ts";
import { Router } from "../../../core/router.ts";
import type { AdmissionOptions } from "../../../core/router-options.ts";
import type { Cell } from "../../../lab/experiment/cells.ts";
import { fleetMemory, requireFit, requireGpu, requireModel } from "../../../lab/experiment/memory.ts";
import type {
  AdmissionConfig,
  ChannelConfig,
  FleetConfig,
  SignalConfig,
  SpeculationConfig,
} from "../../../lab/experiment/types.ts";
import { type EngineLimits, engineProfile, requireRunnable } from "../../../sim/engine/profile.ts";
import type { ChannelOptions } from "../../../sim/fleet/signal-channel.ts";
import type { FleetDelays, FleetOptions, WorkerOptions } from "../../../sim/fleet/types.ts";
import { nearestConstants, withoutGraphs } from "../../../sim/timing/constants.ts";
import type { GpuSpec } from "../../../sim/timing/gpus.ts";
import { SpeculativeTimer } from "../../../sim/timing/speculation.ts";
import { StepTimer } from "../../../sim/timing/step-timer.ts";

type FleetParts = Pick<FleetOptions, "router" | "workers" | "blockTokens" | "delays" | "feed" | "seed">;

/** Enough to send again what a channel loses. */
const REPLAY_DEPTH = 10_000;
/** The index is paged, and pages of short runs are not full. */
const INDEX_BLOCKS_PER_POOL_BLOCK = 2;

/** Router, workers and delays of a cell on the twin; refuses a fleet that could not run. */
export function simulatedFleet(cell: Cell, signals: SignalConfig, tokensPerSequence: number): FleetParts {
  const { fleet, level, arm, seeds } = cell;
  const engine = workerEngine(fleet, tokensPerSequence, seeds.engine);
  const { blockTokens } = fleet;
  const router = new Router(createPolicy(arm.policy, arm.parameters), {
    blockTokens,
    maxReplicas: level.workers,
    maxBlocks: INDEX_BLOCKS_PER_POOL_BLOCK * engine.limits.poolBlocks * level.workers,
    admission: admissionOptions(arm.admission),
    seed: seeds.policy,
  });
  return {
    router,
    workers: Array.from({ length: level.workers }, (_, at) => ({ name: `worker-${at}`, engine })),
    blockTokens,
    delays: fleetDelays(signals),
    feed: { replayDepth: REPLAY_DEPTH, snapshot: true },
    seed: seeds.faults,
  };
}

/** Throws with one line where the engines of a fleet could not run, before anything does. */
export function checkFleet(fleet: FleetConfig, tokensPerSequence: number): void {
  workerEngine(fleet, tokensPerSequence, 0);
}

function workerEngine(fleet: FleetConfig, tokensPerSequence: number, seed: number): WorkerOptions["engine"] {
  const { engine, speculation } = fleet;
  const gpu = requireGpu(fleet.gpu);
  const plan = requireFit(fleetMemory(fleet, tokensPerSequence), fleet);
  const profile = engineProfile(engine.profile);
  const standard = standardLimits(engine.profile, gpu);
  const limits: EngineLimits = {
    blockTokens: fleet.blockTokens,
    poolBlocks: plan.poolBlocks,
    maxSequences: engine.maxSequences ?? standard.maxSequences,
    maxTokensPerStep: engine.maxTokensPerStep ?? standard.maxTokensPerStep,
    chunkedPrefill: engine.chunkedPrefill,
    prefixReuse: engine.prefixReuse,
  };
  try {
    requireRunnable(profile, limits, speculation?.drafts ?? 0);
    const timer = stepTimer(fleet, fleet);
    if (speculation === undefined) return { profile, limits, timer };
    return { profile, limits, timer, speculation: { ...drafting(fleet, speculation, timer), seed } };
  } catch (error) {
    if (!WarmpathError.isInstance(error)) throw error;
    throw new WarmpathError("WP_INVALID_INPUT", `fleet.engine: ${error.message}`, { cause: error });
  }
}

function drafting(
  fleet: FleetConfig,
  speculation: SpeculationConfig,
  target: StepTimer,
): Omit<NonNullable<WorkerOptions["engine"]["speculation"]>, "seed"> {
  const { drafts, acceptanceMean, acceptanceDeviation } = speculation;
  const timer = new SpeculativeTimer(target, stepTimer(fleet, speculation), drafts);
  return { drafts, acceptanceMean, acceptanceDeviation, timer };
}

function stepTimer(
  fleet: FleetConfig,
  { model, weights, kv }: Pick<FleetConfig, "model" | "weights" | "kv">,
): StepTimer {
  const gpu = requireGpu(fleet.gpu);
  const { profile, version, eager } = fleet.engine;
  const { constants } = nearestConstants(profile, version, weights, gpu.generation);
  return new StepTimer({
    model: requireModel(model),
    gpu,
    tensorParallel: fleet.tensorParallel,
    weights,
    kv,
    constants: eager ? withoutGraphs(constants) : constants,
  });
}

/** What the engines choose by themselves: vLLM by card, TensorRT-LLM as its server does, SGLang by its captured graphs. */
function standardLimits(
  profile: FleetConfig["engine"]["profile"],
  gpu: GpuSpec,
): Pick<EngineLimits, "maxSequences" | "maxTokensPerStep"> {
  if (profile === "trtllm") return { maxSequences: 2048, maxTokensPerStep: 8192 };
  if (profile === "sglang") return { maxSequences: 256, maxTokensPerStep: 8192 };
  return gpu.generation === "ampere"
    ? { maxSequences: 256, maxTokensPerStep: 2048 }
    : { maxSequences: 1024, maxTokensPerStep: 8192 };
}

function admissionOptions({ mode, watermarks, queue }: AdmissionConfig): AdmissionOptions {
  return {
    mode,
    ...(watermarks === undefined ? {} : { watermarks }),
    ...(queue === undefined
      ? {}
      : { queue: { maxRequests: queue.maxRequests, maxWaitNs: Math.round(queue.maxWaitSeconds * NS_PER_SECOND) } }),
  };
}

function fleetDelays(signals: SignalConfig): FleetDelays {
  const ns = (milliseconds: number): number => Math.round(milliseconds * NS_PER_MS);
  const channel = ({ delayMs, batchMs, lossShare }: ChannelConfig): ChannelOptions => ({
    delayNs: ns(delayMs),
    batchNs: ns(batchMs),
    lossShare,
  });
  return {
    clientToRouterNs: ns(signals.clientToRouterMs),
    frontendNs: ns(signals.frontendMs),
    frontendTokenNs: signals.frontendMicrosPerToken * 1000,
    routerToWorkerNs: ns(signals.routerToWorkerMs),
    workerToClientNs: ns(signals.workerToClientMs),
    kvEvents: channel(signals.kvEvents),
    firstToken: channel(signals.firstToken),
    growth: channel(signals.growth),
    ended: channel(signals.ended),
  };
}
