/**
 * One simulated run in a process of its own. Outside the clock: reading the trace. Inside: hashing prompts, routing, engines,
 * KV events, request records and all compilation. Then the same run once more in the same process, as every cell of an experiment but the
 * first is; how much of its code it finds compiled is up to the collections until then. Prints one line of JSON. Started by bench.ts.
 */
import { performance } from "node:perf_hooks";
import { setTimeout } from "node:timers/promises";
import { compileLean } from "../../src/cli/commands/run/lean-compiler.ts";
import { createPolicy } from "../../src/core/policy/registry.ts";
import { Router } from "../../src/core/router.ts";
import { engineProfile } from "../../src/sim/engine/profile.ts";
import type { FleetResult } from "../../src/sim/fleet/types.ts";
import { simulateFleet } from "../../src/sim/fleet/virtual-fleet.ts";
import { nearestConstants } from "../../src/sim/timing/constants.ts";
import { findGpu } from "../../src/sim/timing/gpus.ts";
import { findModel } from "../../src/sim/timing/models.ts";
import { StepTimer } from "../../src/sim/timing/step-timer.ts";
import { Schedule } from "../../src/workload/schedule.ts";
import { TraceSessions } from "../../src/workload/trace/trace-sessions.ts";
import { atSpeed, readTimedTrace, syntheticTimedTrace, tiled } from "./workload.ts";

export interface TwinMeasureRequest {
  readonly trace: string | null;
  readonly requests: number;
  readonly workers: number;
  readonly speed: number;
  readonly blockTokens: number;
  readonly policy: string;
  readonly tokenTimes: boolean;
  /** Whether to run it once more; a large run takes the memory of two. */
  readonly twice: boolean;
}

export interface TwinMeasureResult {
  readonly wallSeconds: number;
  readonly cpuSeconds: number;
  /** Of the second run, if there was one. */
  readonly warmCpuSeconds: number | null;
  readonly requestsPerSecond: number;
  readonly hitRatio: number;
  readonly events: number;
  readonly steps: number;
  readonly engineRuns: number;
  readonly kvEvents: number;
  readonly completed: number;
  readonly simulatedSeconds: number;
  readonly ttftP50Ms: number;
}

const TRACE_BLOCK_TOKENS = 512;
/** 0.9 of an H100 after Qwen3-32B in FP8, with KV in FP8: 4,410 blocks of 64. */
const POOL_TOKENS = 282_240;

/** In which other threads have done with what reading the trace left them: code to compile, memory to sweep. */
const SETTLE_MS = 100;

process.stdout.write(`${JSON.stringify(await measure(JSON.parse(process.argv[2]) as TwinMeasureRequest))}\n`);

async function measure(request: TwinMeasureRequest): Promise<TwinMeasureResult> {
  const source = request.trace === null ? syntheticTimedTrace(12_000, 7) : readTimedTrace(request.trace);
  const sessions = new TraceSessions(atSpeed(tiled(source, request.requests), request.speed), TRACE_BLOCK_TOKENS);
  globalThis.gc?.();
  await setTimeout(SETTLE_MS);
  compileLean();
  const first = run(request, sessions);
  const again = request.twice ? run(request, sessions) : undefined;
  const { result, wallSeconds, cpuSeconds } = first;
  if (again !== undefined && again.result.endNs !== result.endNs)
    throw new Error("the same run has ended at another time");
  const engines = result.workers.map(({ engine }) => engine);
  const sum = (of: (engine: (typeof engines)[number]) => number): number => engines.reduce((a, e) => a + of(e), 0);
  const ttfts = result.records
    .flatMap((r) => (r.firstContentNs === undefined ? [] : [r.firstContentNs - r.intendedNs]))
    .sort((a, b) => a - b);
  return {
    wallSeconds,
    cpuSeconds,
    warmCpuSeconds: again?.cpuSeconds ?? null,
    requestsPerSecond: request.requests / wallSeconds,
    hitRatio: sum((e) => e.cachedTokens) / sum((e) => e.promptTokens),
    events: result.counts.events,
    steps: result.counts.steps,
    engineRuns: result.counts.engineRuns,
    kvEvents: result.counts.kvEvents,
    completed: result.accounting.completed,
    simulatedSeconds: result.endNs / 1e9,
    ttftP50Ms: (ttfts[ttfts.length >> 1] ?? 0) / 1e6,
  };
}

interface TimedRun {
  readonly result: FleetResult;
  readonly wallSeconds: number;
  readonly cpuSeconds: number;
}

function run(request: TwinMeasureRequest, sessions: TraceSessions): TimedRun {
  const { blockTokens } = request;
  const poolBlocks = Math.floor(POOL_TOKENS / blockTokens);
  const gpu = findGpu("h100");
  const model = findModel("qwen3-32b");
  if (gpu === undefined || model === undefined) throw new Error("the twin knows no H100 or no Qwen3-32B");
  const { constants } = nearestConstants("vllm", "", "fp8", gpu.generation);
  const wallStart = performance.now();
  const cpuStart = process.cpuUsage();
  const timer = new StepTimer({ model, gpu, tensorParallel: 1, weights: "fp8", kv: "fp8", constants });
  const router = new Router(createPolicy(request.policy, {}), {
    blockTokens,
    maxReplicas: request.workers,
    maxBlocks: poolBlocks * request.workers * 2,
    hasSparseTable: true,
    admission: { mode: "engine" },
    seed: 1,
  });
  const limits = {
    blockTokens,
    poolBlocks,
    maxSequences: 1024,
    maxTokensPerStep: 8192,
    chunkedPrefill: true,
    prefixReuse: true,
  };
  const profile = engineProfile("vllm");
  const result = simulateFleet({
    router,
    workers: Array.from({ length: request.workers }, (_, i) => ({ name: `w${i}`, engine: { profile, limits, timer } })),
    source: new Schedule(sessions),
    blockTokens,
    feed: { replayDepth: 0, snapshot: true },
    tokenTimes: request.tokenTimes,
    seed: 1,
  });
  const cpu = process.cpuUsage(cpuStart);
  return {
    result,
    wallSeconds: (performance.now() - wallStart) / 1000,
    cpuSeconds: (cpu.user + cpu.system) / 1e6,
  };
}
