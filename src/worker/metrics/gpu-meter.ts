import { Gauge, type Registry } from "prom-client";
import type { Nanoseconds } from "../../core/clock.ts";
import type { MemoryPlan } from "../../sim/memory-plan.ts";

const BYTES_PER_MIB = 1024 * 1024;
/** Samples over which the busy share is taken, at the pace of whoever calls `sample`. */
const WINDOW_SAMPLES = 5;

/** What a card draws at rest and at most, in watts; the limit is the maker's, the rest a round figure. */
const POWER_WATTS: Readonly<Record<string, { readonly idle: number; readonly limit: number }>> = {
  "a100-40gb": { idle: 50, limit: 400 },
  "a100-80gb": { idle: 60, limit: 400 },
  h100: { idle: 70, limit: 700 },
  h200: { idle: 75, limit: 700 },
  b200: { idle: 140, limit: 1000 },
};

export interface GpuMeterOptions {
  readonly registry: Registry;
  readonly gpu: string;
  readonly gpus: number;
  readonly worker: string;
  readonly plan: MemoryPlan;
  /** Time the engine has been in steps so far, on the clock that samples are taken by. */
  readonly busyNs: (nowNs: Nanoseconds) => number;
}

/**
 * GPUs as DCGM would show them. Everything is simulated, and a label says so: a card is busy while the engine is in a step, its
 * memory is what the plan lays out, and its power goes from rest to the limit with the busy share.
 */
export class GpuMeter {
  readonly #options: GpuMeterOptions;
  readonly #samples: { readonly atNs: Nanoseconds; readonly busyNs: number }[] = [];
  #busyShare = 0;

  constructor(options: GpuMeterOptions) {
    this.#options = options;
    const { plan, gpu } = options;
    const used = plan.weightBytes + plan.draftWeightBytes + plan.overheadBytes + plan.poolBytes;
    const { idle, limit } = POWER_WATTS[gpu] ?? { idle: 0, limit: 0 };
    const power = (): number => idle + this.#busyShare * (limit - idle);
    this.#gauge("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", () => 100 * this.#busyShare);
    this.#gauge("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Share of time the GPU is busy.", () => this.#busyShare);
    this.#gauge("DCGM_FI_DEV_FB_USED", "Memory in use (in MiB).", () => used / BYTES_PER_MIB);
    this.#gauge("DCGM_FI_DEV_FB_FREE", "Memory not in use (in MiB).", () => (plan.hbmBytes - used) / BYTES_PER_MIB);
    this.#gauge("DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", power);
  }

  /** Share of the last samples' time in which the engine was busy. */
  get busyShare(): number {
    return this.#busyShare;
  }

  /** Takes a sample; call it at an even pace. */
  sample(nowNs: Nanoseconds): void {
    const samples = this.#samples;
    samples.push({ atNs: nowNs, busyNs: this.#options.busyNs(nowNs) });
    if (samples.length > WINDOW_SAMPLES) samples.shift();
    const [first, last] = [samples[0], samples[samples.length - 1]];
    const passedNs = last.atNs - first.atNs;
    // A clock that stands still says nothing about the share.
    if (passedNs > 0) this.#busyShare = Math.min(1, (last.busyNs - first.busyNs) / passedNs);
  }

  #gauge(name: string, help: string, value: () => number): void {
    const { registry, gpu: modelName, gpus, worker } = this.#options;
    void new Gauge({
      name,
      help: `${help} Simulated.`,
      labelNames: ["gpu", "UUID", "device", "modelName", "Hostname", "simulated"],
      registers: [registry],
      collect() {
        for (let gpu = 0; gpu < gpus; gpu++) {
          const labels = { gpu, UUID: `GPU-${worker}-${gpu}`, device: `nvidia${gpu}`, modelName, Hostname: worker };
          this.set({ ...labels, simulated: "true" }, value());
        }
      },
    });
  }
}
