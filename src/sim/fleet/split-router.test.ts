import { describe, expect, test } from "vitest";
import { NS_PER_MS } from "../../core/clock.ts";
import { createPolicy } from "../../core/policy/registry.ts";
import { Rng } from "../../core/rng.ts";
import { Router } from "../../core/router.ts";
import { ArrivalSupply } from "../../workload/arrival-supply.ts";
import { PrefixGroups } from "../../workload/prefix-groups.ts";
import { Schedule } from "../../workload/schedule.ts";
import { VLLM } from "../engine/profile.ts";
import { nearestConstants } from "../timing/constants.ts";
import { findGpu, type GpuSpec } from "../timing/gpus.ts";
import { findModel, type ModelShape } from "../timing/models.ts";
import { StepTimer } from "../timing/step-timer.ts";
import { SplitRouter } from "./split-router.ts";
import type { FleetOptions, FleetResult } from "./types.ts";
import { simulateFleet } from "./virtual-fleet.ts";

const REQUESTS = 400;
const gpu = findGpu("h100") as GpuSpec;
const timer = new StepTimer({
  model: findModel("qwen3-8b") as ModelShape,
  gpu,
  tensorParallel: 1,
  weights: "bf16",
  kv: "bf16",
  constants: nearestConstants("vllm", "", "bf16", gpu.generation).constants,
});
const limits = {
  blockTokens: 16,
  poolBlocks: 4000,
  maxSequences: 64,
  maxTokensPerStep: 2048,
  chunkedPrefill: true,
  prefixReuse: true,
};

function routersOf(count: number): Router[] {
  return Array.from(
    { length: count },
    () =>
      new Router(createPolicy("kv-cost", {}), {
        blockTokens: 16,
        maxReplicas: 3,
        maxBlocks: 24_000,
        admission: { mode: "engine" },
      }),
  );
}

function simulate(router: FleetOptions["router"], lossShare = 0): FleetResult {
  const groups = {
    groups: 6,
    skew: 0,
    prefixTokens: [800, 1600],
    suffixTokens: [20, 80],
    outputTokens: [5, 30],
  } as const;
  const supply = new PrefixGroups(groups, new Rng(3), REQUESTS);
  const engine = { profile: VLLM, limits, timer };
  return simulateFleet({
    router,
    workers: ["a", "b", "c"].map((name) => ({ name, engine })),
    source: new Schedule(new ArrivalSupply(supply, { kind: "poisson", rateRps: 60 }, new Rng(4))),
    blockTokens: 16,
    feed: { replayDepth: 1000, snapshot: true },
    delays: { kvEvents: { delayNs: 5 * NS_PER_MS, batchNs: 0, lossShare } },
  });
}

describe("two routers in front of one fleet", () => {
  test("share the requests, each with its own accounts, and nothing is lost", () => {
    const routers = routersOf(2);
    const { accounting, records } = simulate(new SplitRouter(routers));
    expect(accounting).toMatchObject({ offered: REQUESTS, completed: REQUESTS });
    const offered = routers.map((router) => router.accounting.offered);
    expect(offered[0] + offered[1]).toBe(REQUESTS);
    expect(Math.min(...offered)).toBeGreaterThan(REQUESTS / 3);
    expect(new Set(records.map(({ worker }) => worker)).size).toBe(3);
  });

  test("both hear what is cached where, whoever placed it", () => {
    const routers = routersOf(2);
    simulate(new SplitRouter(routers));
    const held = routers.map((router) => router.index.stats().blocks);
    expect(held[0]).toBeGreaterThan(100);
    expect(held[1]).toBe(held[0]);
  });

  test("both catch up with events that were lost", () => {
    const { accounting, counts } = simulate(new SplitRouter(routersOf(2)), 0.05);
    expect(counts.kvEventsLost).toBeGreaterThan(0);
    expect(accounting.completed).toBe(REQUESTS);
  });

  test("are one router where there is one", () => {
    const alone = simulate(routersOf(1)[0]);
    expect(simulate(new SplitRouter(routersOf(1))).records).toEqual(alone.records);
  });
});
