import { Registry } from "prom-client";
import type { Nanoseconds } from "../../core/clock.ts";
import type { ReportedLoad } from "../../core/load/load-description.ts";
import type { EngineLimits } from "../../sim/engine/profile.ts";
import type { MemoryPlan } from "../../sim/memory-plan.ts";
import { respondJson, type Routes } from "../http-reply.ts";
import type { EngineLoad, TwinEngine } from "../twin-engine.ts";
import { registerEngineMetrics } from "./engine-metrics.ts";
import { GenerationMeter } from "./generation-meter.ts";
import { GpuMeter } from "./gpu-meter.ts";

export interface InstrumentsOptions {
  readonly worker: string;
  readonly model: string;
  readonly engine: TwinEngine;
  readonly limits: EngineLimits;
  readonly plan: MemoryPlan;
  readonly cacheDtype: string;
  readonly gpu: string;
  readonly gpus: number;
  /** Told the engine's load whenever it has changed. */
  readonly report: (load: ReportedLoad) => void;
}

/** Everything that is measured of one worker. */
export class Instruments {
  readonly meter: GenerationMeter;
  readonly routes: Routes;
  readonly #options: InstrumentsOptions;
  readonly #gpus: GpuMeter;
  #lastLoad: EngineLoad | undefined;

  constructor(options: InstrumentsOptions) {
    this.#options = options;
    const { worker, engine, limits, plan, gpu, gpus } = options;
    // Two, because the labels of an engine are none of a GPU's.
    const registries = [new Registry(), new Registry()] as const;
    const [engineRegistry, gpuRegistry] = registries;
    engineRegistry.setDefaultLabels({ model_name: options.model, engine: "0" });
    this.meter = new GenerationMeter(engineRegistry);
    registerEngineMetrics(engineRegistry, engine, {
      blockTokens: limits.blockTokens,
      poolBlocks: limits.poolBlocks,
      cacheDtype: options.cacheDtype,
      memoryFraction: plan.memoryFraction,
      prefixReuse: limits.prefixReuse,
    });
    this.#gpus = new GpuMeter({
      registry: gpuRegistry,
      worker,
      gpu,
      gpus,
      plan,
      busyNs: (nowNs) => engine.busyNs(nowNs),
    });
    this.routes = {
      "GET /metrics": async (_, response) => {
        const texts = await Promise.all(registries.map((registry) => registry.metrics()));
        response.writeHead(200, { "content-type": engineRegistry.contentType }).end(texts.join("\n"));
      },
      // What SGLang's routers ask for when they balance by load.
      "GET /get_load": (_, response) => {
        const { running, waiting, heldBlocks } = engine.load;
        const rank = { dp_rank: 0, num_reqs: running + waiting, num_waiting_reqs: waiting };
        respondJson(response, 200, JSON.stringify([{ ...rank, num_tokens: heldBlocks * limits.blockTokens }]));
      },
    };
  }

  /** Samples the GPUs and reports the load if it is another one; call it at an even pace. */
  look(nowNs: Nanoseconds): void {
    this.#gpus.sample(nowNs);
    const { engine, limits, report } = this.#options;
    const { load } = engine;
    const { running, waiting, heldBlocks, poolBlocks } = load;
    const last = this.#lastLoad;
    if (last?.running === running && last.waiting === waiting && last.heldBlocks === heldBlocks) return;
    this.#lastLoad = load;
    const kvUsage = heldBlocks / poolBlocks;
    report({ running, waiting, kvUsage, batchSlots: limits.maxSequences, kvBlocks: poolBlocks });
  }
}
