/** What tests need to say a small scenario in a line: engines with a few small blocks, and requests by their contents. */
import { ROOT_HI, ROOT_LO, chainHashes } from "../../core/hash.ts";
import { nearestConstants } from "../timing/constants.ts";
import { findGpu, type GpuSpec } from "../timing/gpus.ts";
import { findModel, type ModelShape } from "../timing/models.ts";
import { StepTimer } from "../timing/step-timer.ts";
import { Engine } from "./engine.ts";
import type { EngineOptions } from "./engine-options.ts";
import type { EngineRequest } from "./engine-request.ts";
import { type EngineLimits, type EngineProfile, VLLM } from "./profile.ts";
import { driveEngine, type EngineInput, type EngineOutput } from "./single-engine.ts";

const BLOCK = 4;
const gpu = findGpu("H100") as GpuSpec;
const { constants } = nearestConstants("vllm", "", "fp8", gpu.generation);
export const timerOf = (model: string): StepTimer =>
  new StepTimer({
    model: findModel(model) as ModelShape,
    gpu,
    tensorParallel: 1,
    weights: "fp8",
    kv: "fp8",
    constants,
  });
const timer = timerOf("llama-3.1-8b");

/** vLLM without scheduling ahead, so that steps can be counted by hand. */
export const PLAIN: EngineProfile = { ...VLLM, asyncSchedulingDepth: 0, reservedBlocks: 0 };

export function engineWith(
  profile: EngineProfile,
  limits: Partial<EngineLimits> = {},
  options: Partial<EngineOptions> = {},
): Engine {
  return new Engine({
    profile,
    limits: {
      blockTokens: BLOCK,
      poolBlocks: 64,
      maxSequences: 8,
      maxTokensPerStep: 64,
      chunkedPrefill: true,
      prefixReuse: true,
      ...limits,
    },
    timer,
    incarnation: "one",
    kvEvents: true,
    coalesce: true,
    growth: "block",
    tokenTimes: true,
    ...options,
  });
}

/** A request whose blocks have these contents; output blocks follow the prompt's. */
export function request(
  key: number,
  contents: readonly number[],
  promptTokens: number,
  outputTokens: number,
  more: Partial<EngineRequest> = {},
): EngineRequest {
  const local = Uint32Array.from(contents.flatMap((content) => [content + 1, content * 31 + 7]));
  chainHashes(local, contents.length, ROOT_LO, ROOT_HI, local);
  return { key, promptTokens, outputTokens, sequence: local, ...more };
}

export function play(engine: Engine, ...submissions: (readonly [atMs: number, EngineRequest])[]): EngineOutput {
  return driveEngine(
    engine,
    submissions.map(([atMs, submitted]): EngineInput => ({ kind: "submit", atNs: atMs * 1e6, request: submitted })),
  );
}

export const cachedOf = (output: EngineOutput): number[] =>
  [...output.finished].sort((a, b) => a.key - b.key).map(({ cachedTokens }) => cachedTokens);

export const eventLines = (output: EngineOutput): string[] =>
  output.kvEvents.map(({ event }) => `${event.kind} ${event.kind === "cleared" ? 0 : event.engine.length / 2}`);
