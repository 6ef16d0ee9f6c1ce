import { Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { NS_PER_MS } from "../../core/clock.ts";
import { planMemory } from "../../sim/memory-plan.ts";
import { GPUS } from "../../sim/timing/gpus.ts";
import { MODELS } from "../../sim/timing/models.ts";
import { GpuMeter } from "./gpu-meter.ts";

const H200 = GPUS.filter(({ name }) => name === "h200")[0];
const PLAN = planMemory({
  gpu: H200,
  tensorParallel: 1,
  model: MODELS[0],
  weights: "bf16",
  kv: "bf16",
  memoryFraction: 0.9,
  poolRule: "of-total",
  blockTokens: 16,
  tokensPerSequence: 8192,
});

function meter(busyNs: (nowNs: number) => number): { meter: GpuMeter; value: (name: string) => Promise<number> } {
  const registry = new Registry();
  const made = new GpuMeter({ registry, gpu: "h200", gpus: 1, worker: "a", plan: PLAN, busyNs });
  const value = async (name: string): Promise<number> =>
    (await registry.getSingleMetric(name)?.get())?.values[0].value ?? -1;
  return { meter: made, value };
}

describe("simulated GPUs", () => {
  test("are as busy as the engine was over the last samples", async () => {
    // Busy for the first half second, idle after it.
    const { meter: gpus, value } = meter((nowNs) => Math.min(nowNs, 500 * NS_PER_MS));
    for (let ms = 0; ms <= 800; ms += 200) gpus.sample(ms * NS_PER_MS);
    expect(gpus.busyShare).toBeCloseTo(500 / 800);
    for (let ms = 1000; ms <= 1800; ms += 200) gpus.sample(ms * NS_PER_MS);
    expect(gpus.busyShare).toBe(0);
    expect(await value("DCGM_FI_DEV_POWER_USAGE")).toBe(75);
  });

  test("draw their limit when they are always busy", async () => {
    const { meter: gpus, value } = meter((nowNs) => nowNs);
    for (let ms = 0; ms <= 800; ms += 200) gpus.sample(ms * NS_PER_MS);
    expect([await value("DCGM_FI_DEV_GPU_UTIL"), await value("DCGM_FI_DEV_POWER_USAGE")]).toEqual([100, 700]);
  });

  test("stay as they were while time stands still", () => {
    const { meter: gpus } = meter((nowNs) => nowNs);
    for (const nowNs of [0, 1000, 1000, 1000, 1000, 1000, 1000]) gpus.sample(nowNs);
    expect(gpus.busyShare).toBe(1);
  });

  test("use the memory that the plan lays out, and no more than there is", async () => {
    const { value } = meter(() => 0);
    const mib = (await value("DCGM_FI_DEV_FB_USED")) + (await value("DCGM_FI_DEV_FB_FREE"));
    expect(mib * 1024 * 1024).toBeCloseTo(H200.memoryBytes, -1);
    expect(await value("DCGM_FI_DEV_FB_USED")).toBeCloseTo(PLAN.usableBytes / 1024 / 1024, 0);
  });
});
