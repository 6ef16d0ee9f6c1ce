import { describe, expect, it } from "vitest";
import { ACCOUNTS } from "../../core/accounts.ts";
import { NS_PER_MS, NS_PER_SECOND, type Nanoseconds } from "../../core/clock.ts";
import { createPolicy } from "../../core/policy/registry.ts";
import { Router } from "../../core/router.ts";
import type { AdmissionOptions } from "../../core/router-options.ts";
import { Schedule } from "../../workload/schedule.ts";
import { TraceSessions } from "../../workload/trace/trace-sessions.ts";
import { VLLM } from "../engine/profile.ts";
import { nearestConstants } from "../timing/constants.ts";
import { findGpu, type GpuSpec } from "../timing/gpus.ts";
import { findModel, type ModelShape } from "../timing/models.ts";
import { StepTimer } from "../timing/step-timer.ts";
import { IDEAL_CHANNEL } from "./signal-channel.ts";
import type { FleetOptions, FleetResult } from "./types.ts";
import { simulateFleet } from "./virtual-fleet.ts";

const BLOCK_TOKENS = 16;
const gpu = findGpu("A100-40GB") as GpuSpec;
const { constants } = nearestConstants("vllm", "", "bf16", gpu.generation);
const model = findModel("qwen3-8b") as ModelShape;
const timer = new StepTimer({ model, gpu, tensorParallel: 1, weights: "bf16", kv: "bf16", constants });
const limits = {
  blockTokens: BLOCK_TOKENS,
  poolBlocks: 200,
  maxSequences: 6,
  maxTokensPerStep: 256,
  chunkedPrefill: true,
  prefixReuse: true,
};

const GAP_MS = 40;
const REQUESTS = 200;
const CRASH_NS = 3 * NS_PER_SECOND;

interface Crashing {
  readonly result: FleetResult;
  readonly router: Router;
}

/** A request every 40 ms, each of 640 tokens that begin alike, with 60 tokens of answer. */
function simulate(
  crashes: Readonly<Record<string, Nanoseconds>>,
  options: Partial<FleetOptions> = {},
  admission: AdmissionOptions = { mode: "engine" },
): Crashing {
  const rows = Array.from({ length: REQUESTS }, (_, at) => ({
    timestampMs: at * GAP_MS,
    inputTokens: 640,
    outputTokens: 60,
    hashIds: [1, 2, 3, 4, 5, ...Array.from({ length: 15 }, (_unused, k) => 1000 + 20 * at + k)],
  }));
  const router = new Router(createPolicy("round-robin", {}), {
    blockTokens: BLOCK_TOKENS,
    maxReplicas: 2,
    maxBlocks: 4000,
    admission,
  });
  const result = simulateFleet({
    router,
    workers: ["a", "b"].map((name) => ({
      name,
      engine: { profile: VLLM, limits, timer },
      ...(crashes[name] === undefined ? {} : { crashNs: crashes[name] }),
    })),
    source: new Schedule(new TraceSessions(rows, 32)),
    blockTokens: BLOCK_TOKENS,
    feed: { replayDepth: 0, snapshot: true },
    ...options,
  });
  return { result, router };
}

/** Every request is in one account, and router and clients agree which. */
function expectToAddUp({ result: { records, accounting }, router }: Crashing): void {
  const { offered, ...accounts } = accounting;
  expect(records).toHaveLength(REQUESTS);
  expect(new Set(records.map(({ id }) => id)).size).toBe(REQUESTS);
  expect(offered).toBe(REQUESTS);
  expect(Object.values(accounts).reduce((sum, count) => sum + count, 0)).toBe(offered);
  for (const account of ACCOUNTS) {
    expect(records.filter((record) => record.account === account)).toHaveLength(accounts[account]);
    expect(router.accounting[account]).toBe(accounts[account]);
  }
}

describe("a worker that dies", () => {
  it("fails the requests whose answers have begun, and the others are placed again", () => {
    const run = simulate({ a: CRASH_NS });
    expectToAddUp(run);
    const { records, accounting } = run.result;
    const failed = records.filter(({ account }) => account === "failed");
    expect(failed.length).toBeGreaterThan(2);
    for (const record of failed) {
      expect(record.worker).toBe("a");
      expect(record.endNs).toBe(CRASH_NS);
      expect(record.firstContentNs).toBeLessThanOrEqual(CRASH_NS);
      expect(record.outputTokens).toBeGreaterThan(0);
      expect(record.outputTokens).toBeLessThan(60);
      expect(record.failure?.message).toBe("a died");
    }
    const again = records.filter(({ attempts }) => attempts > 1);
    expect(again.length).toBeGreaterThan(2);
    expect(
      again.every(({ worker, account, outputTokens }) => [worker, account, outputTokens].join() === "b,completed,60"),
    ).toBe(true);
    expect(accounting.completed + accounting.failed).toBe(REQUESTS);
  });

  it("gets nothing more, and the router no longer knows it or its cache", () => {
    const { result, router } = simulate({ a: CRASH_NS });
    const late = result.records.filter(({ intendedNs }) => intendedNs >= CRASH_NS);
    expect(late.every(({ worker }) => worker === "b")).toBe(true);
    expect(router.fleet.indices()).toHaveLength(1);
    const [a, b] = result.workers;
    expect(a.engine.busyNs).toBeLessThanOrEqual(CRASH_NS);
    expect(b.engine.finished).toBeGreaterThan(a.engine.finished);
  });

  it("is found out by a request that was on the wire, whatever late signals of earlier ones still arrive", () => {
    const late = { ...IDEAL_CHANNEL, delayNs: 90 * NS_PER_MS };
    const wireNs = 60 * NS_PER_MS;
    const { result } = simulate(
      { a: CRASH_NS + NS_PER_MS },
      {
        delays: {
          routerToWorkerNs: wireNs,
          workerToClientNs: 2 * NS_PER_MS,
          kvEvents: { ...late, lossShare: 0.1 },
          firstToken: late,
          growth: late,
          ended: late,
        },
      },
    );
    const { records, accounting } = result;
    const onTheWire = records.filter((r) => r.intendedNs <= CRASH_NS && r.intendedNs > CRASH_NS - wireNs);
    expect(onTheWire).toHaveLength(2);
    const [retried, ...others] = onTheWire.filter(({ attempts }) => attempts === 2);
    expect(others).toEqual([]);
    expect(retried.placedNs).toBe(retried.intendedNs + wireNs);
    expect(retried.account).toBe("completed");
    expect(accounting.failed).toBeGreaterThan(0);
    expect(accounting.completed + accounting.failed).toBe(REQUESTS);
  });

  it("leaves nobody where it was the last one: what comes after is shed, what waits in the router too", () => {
    for (const admission of [{ mode: "engine" }, { mode: "queue" }] as const) {
      const run = simulate({ a: CRASH_NS, b: CRASH_NS + NS_PER_SECOND }, {}, admission);
      expectToAddUp(run);
      const { accounting, records } = run.result;
      expect(accounting.shed).toBeGreaterThan(50);
      expect(accounting.unfinished).toBe(0);
      const late = records.filter(({ intendedNs }) => intendedNs >= CRASH_NS + NS_PER_SECOND);
      expect(late.every(({ account }) => account === "shed")).toBe(true);
    }
  });
});
