import { NS_PER_MS, NS_PER_SECOND } from "../../../core/clock.ts";
import { WarmpathError } from "../../../core/errors.ts";
import { MOST_INDEX_BLOCKS } from "../../../core/kv-index/block-table.ts";
import { createPolicy } from "../../../core/policy/registry.ts";
import type { DecisionLogOptions } from "../../../core/record/decision-log.ts";
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
import { SharingRouter } from "../../../sim/fleet/sharing-router.ts";
import { SplitRouter } from "../../../sim/fleet/split-router.ts";
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

/** How the real fleet differs from what everybody believes of it. */
export interface FleetVariation {
  /** Factor on the speed at which prompts are computed; that of decoding stays. */
  readonly prefillSpeed: number;
  /** Factor on the speed of the first worker. */
  readonly firstWorkerSpeed: number;
  /** Routers in front of the fleet. */
  readonly routers: number;
  /** How long it takes until a router's requests are known to the others; without it they do not know of each other. */
  readonly newsDelayNs?: number;
  /** False where engines tell nothing of their caches. */
  readonly kvEvents?: boolean;
}

/** The fleet as it is believed to be. */
const NO_VARIATION: FleetVariation = { prefillSpeed: 1, firstWorkerSpeed: 1, routers: 1 };

/** Router, workers and delays of a cell on the twin; refuses a fleet that could not run. Decisions are kept as summaries unless told. */
export function simulatedFleet(
  cell: Cell,
  signals: SignalConfig,
  tokensPerSequence: number,
  variation: FleetVariation = NO_VARIATION,
  records?: DecisionLogOptions,
): FleetParts {
  const { fleet, level, arm, seeds } = cell;
  const { prefillSpeed, firstWorkerSpeed } = variation;
  const engine = workerEngine(fleet, tokensPerSequence, seeds.engine, { prefillSpeed, speed: 1 });
  const first =
    firstWorkerSpeed === 1
      ? engine
      : workerEngine(fleet, tokensPerSequence, seeds.engine, { prefillSpeed, speed: firstWorkerSpeed });
  const { blockTokens } = fleet;
  const routers = Array.from({ length: variation.routers }, (_, at) => {
    return new Router(createPolicy(arm.policy, arm.parameters), {
      blockTokens,
      maxReplicas: level.workers,
      maxBlocks: indexBlocks(engine.limits, level.workers),
      hasSparseTable: true,
      admission: admissionOptions(arm.admission),
      seed: seeds.policy + at,
      ...(records === undefined ? {} : { records }),
    });
  });
  return {
    router: together(routers, variation.newsDelayNs),
    workers: Array.from({ length: level.workers }, (_, at) => ({
      name: `worker-${at}`,
      engine: at === 0 ? first : engine,
    })),
    blockTokens,
    delays: fleetDelays(signals),
    ...(variation.kvEvents === false ? {} : { feed: { replayDepth: REPLAY_DEPTH, snapshot: true } }),
    seed: seeds.faults,
  };
}

function together(routers: readonly Router[], newsDelayNs: number | undefined): FleetParts["router"] {
  if (routers.length === 1) return routers[0];
  return newsDelayNs === undefined ? new SplitRouter(routers) : new SharingRouter(routers, newsDelayNs);
}

/** Throws with one line where so many engines of a fleet could not run, before anything does. */
export function checkFleet(fleet: FleetConfig, workers: number, tokensPerSequence: number): void {
  const { limits } = workerEngine(fleet, tokensPerSequence, 0, AS_BELIEVED);
  const blocks = indexBlocks(limits, workers);
  if (blocks <= MOST_INDEX_BLOCKS) return;
  const [needed, most] = [blocks, MOST_INDEX_BLOCKS].map((count) => count.toLocaleString("en-US"));
  throw new WarmpathError(
    "WP_INVALID_INPUT",
    `fleet: ${workers} workers with pools of ${limits.poolBlocks} blocks need an index of ${needed}, and ${most} are the most: take larger blockTokens, smaller pools or fewer workers`,
  );
}

/** Blocks that a router's index has room for. */
function indexBlocks({ poolBlocks }: EngineLimits, workers: number): number {
  return INDEX_BLOCKS_PER_POOL_BLOCK * poolBlocks * workers;
}

/** Requests that one worker decodes at once, by its limits. */
export function slotsOf({ engine, gpu }: FleetConfig): number {
  return engine.maxSequences ?? standardLimits(engine.profile, requireGpu(gpu)).maxSequences;
}

/** Factors on the speed of one worker: of all it does, and of prompts besides. */
interface WorkerSpeed {
  readonly speed: number;
  readonly prefillSpeed: number;
}

const AS_BELIEVED: WorkerSpeed = { speed: 1, prefillSpeed: 1 };

/** What the engine of one worker is made from; refuses one that could not run. */
export function workerEngine(
  fleet: FleetConfig,
  tokensPerSequence: number,
  seed: number,
  speed: WorkerSpeed = AS_BELIEVED,
): WorkerOptions["engine"] {
  const { engine, speculation } = fleet;
  const gpu = requireGpu(fleet.gpu);
  const plan = requireFit(fleetMemory(fleet, tokensPerSequence), fleet);
  const { batchWaitSteps = 0, batchWaitTokensRatio = 0 } = engine;
  const profile = engineProfile(engine.profile, { batchWaitSteps, batchWaitTokensRatio });
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
    const timer = stepTimer(fleet, fleet, speed);
    if (speculation === undefined) return { profile, limits, timer };
    return { profile, limits, timer, speculation: { ...drafting(fleet, speculation, timer, speed), seed } };
  } catch (error) {
    if (!WarmpathError.isInstance(error)) throw error;
    throw new WarmpathError("WP_INVALID_INPUT", `fleet.engine: ${error.message}`, { cause: error });
  }
}

function drafting(
  fleet: FleetConfig,
  speculation: SpeculationConfig,
  target: StepTimer,
  speed: WorkerSpeed,
): Omit<NonNullable<WorkerOptions["engine"]["speculation"]>, "seed"> {
  const { drafts, acceptanceMean, acceptanceDeviation } = speculation;
  const timer = new SpeculativeTimer(target, stepTimer(fleet, speculation, speed), drafts);
  return { drafts, acceptanceMean, acceptanceDeviation, timer };
}

function stepTimer(
  fleet: FleetConfig,
  { model, weights, kv }: Pick<FleetConfig, "model" | "weights" | "kv">,
  { speed, prefillSpeed }: WorkerSpeed,
): StepTimer {
  const gpu = requireGpu(fleet.gpu);
  const { profile, version, eager } = fleet.engine;
  const { constants } = nearestConstants(profile, version, weights, gpu.generation);
  const timed = eager ? withoutGraphs(constants) : constants;
  return new StepTimer({
    model: requireModel(model),
    gpu: speed === 1 ? gpu : slowedGpu(gpu, speed),
    tensorParallel: fleet.tensorParallel,
    weights,
    kv,
    // Prompts are bound by matrix rates, answers by memory: this changes the former and hardly the latter.
    constants: {
      ...timed,
      computeEfficiency: timed.computeEfficiency * prefillSpeed,
      prefillAttentionEfficiency: timed.prefillAttentionEfficiency * prefillSpeed,
    },
  });
}

/** A card that runs at another clock: all its rates are lower alike. */
function slowedGpu(gpu: GpuSpec, speed: number): GpuSpec {
  return {
    ...gpu,
    memoryBytesPerSecond: gpu.memoryBytesPerSecond * speed,
    fp8FlopsPerSecond: gpu.fp8FlopsPerSecond * speed,
    bf16FlopsPerSecond: gpu.bf16FlopsPerSecond * speed,
  };
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
