import { describe, expect, it } from "vitest";
import { ACCOUNTS } from "../../core/accounts.ts";
import { NS_PER_MS, NS_PER_SECOND } from "../../core/clock.ts";
import { createPolicy } from "../../core/policy/registry.ts";
import type { RequestRecord } from "../../core/request-record.ts";
import { Rng } from "../../core/rng.ts";
import { Router } from "../../core/router.ts";
import type { AdmissionOptions } from "../../core/router-options.ts";
import { chunkTimesNs } from "../../measure/token-gaps.ts";
import { ClosedLoop } from "../../workload/closed-loop.ts";
import { Schedule } from "../../workload/schedule.ts";
import { Conversations } from "../../workload/conversation/conversations.ts";
import { conversationPreset } from "../../workload/conversation/presets.ts";
import type { SessionSupply, WorkloadSource } from "../../workload/request.ts";
import { TraceSessions } from "../../workload/trace/trace-sessions.ts";
import type { EngineLimits, EngineProfile } from "../engine/profile.ts";
import { TRTLLM, VLLM } from "../engine/profile.ts";
import { nearestConstants } from "../timing/constants.ts";
import { findGpu, type GpuSpec } from "../timing/gpus.ts";
import { findModel, type ModelShape } from "../timing/models.ts";
import { StepTimer } from "../timing/step-timer.ts";
import { type ChannelOptions, IDEAL_CHANNEL } from "./signal-channel.ts";
import type { FleetOptions, FleetResult } from "./types.ts";
import { simulateFleet } from "./virtual-fleet.ts";

const BLOCK_TOKENS = 16;
const gpu = findGpu("A100-40GB") as GpuSpec;
const { constants } = nearestConstants("vllm", "", "bf16", gpu.generation);
const model = findModel("qwen3-8b") as ModelShape;
const timer = new StepTimer({ model, gpu, tensorParallel: 1, weights: "bf16", kv: "bf16", constants });

const LIMITS: EngineLimits = {
  blockTokens: BLOCK_TOKENS,
  poolBlocks: 120,
  maxSequences: 12,
  maxTokensPerStep: 256,
  chunkedPrefill: true,
  prefixReuse: true,
};

/** Prompts in a few families that share beginnings, with the odd one that no worker can hold. */
function traceOf(requests: number, gapMs: number, families = 4): SessionSupply {
  const rng = new Rng(5);
  let timestampMs = 0;
  const rows = Array.from({ length: requests }, (_, i) => {
    timestampMs += Math.floor(rng.uniform() * 2 * gapMs);
    const family = rng.below(families);
    const shared = Array.from({ length: 4 + rng.below(3) }, (_unused, k) => family * 100 + k);
    const own = Array.from({ length: rng.below(8) }, (_unused, k) => 10_000 + i * 20 + k);
    const hashIds = [...shared, ...own];
    const inputTokens = i % 37 === 36 ? 5000 : hashIds.length * 32 - rng.below(32);
    return { timestampMs, inputTokens, outputTokens: 1 + rng.below(120), hashIds };
  });
  return new TraceSessions(rows, 32);
}

interface Setting {
  readonly policy?: string;
  readonly profile?: EngineProfile;
  readonly source?: WorkloadSource;
  readonly admission?: AdmissionOptions;
  readonly limits?: EngineLimits;
}

function simulate(setting: Setting = {}, options: Partial<FleetOptions> = {}): FleetResult {
  const { profile = VLLM, limits = LIMITS, source = new Schedule(traceOf(300, 60)) } = setting;
  const router = new Router(createPolicy(setting.policy ?? "kv-cost", {}), {
    blockTokens: BLOCK_TOKENS,
    maxReplicas: 3,
    maxBlocks: 4000,
    admission: setting.admission ?? { mode: "engine" },
    seed: 3,
  });
  return simulateFleet({
    router,
    workers: ["a", "b", "c"].map((name) => ({ name, engine: { profile, limits, timer } })),
    source,
    blockTokens: BLOCK_TOKENS,
    feed: { replayDepth: 0, snapshot: true },
    ...options,
  });
}

/** Everything of a result that must not depend on how decode steps are run. */
function comparable(result: FleetResult): unknown {
  const withTimes = ({ tokenTimes, ...record }: RequestRecord): unknown => ({
    ...record,
    times: tokenTimes === undefined ? undefined : chunkTimesNs(tokenTimes),
  });
  const { steps, kvEvents } = result.counts;
  const workers = result.workers.map(({ engine: { runs: _runs, ...engine }, ...worker }) => ({ ...worker, engine }));
  return { ...result, counts: { steps, kvEvents }, workers, records: result.records.map(withTimes) };
}

function expectToAddUp(result: FleetResult): void {
  const { offered, ...accounts } = result.accounting;
  expect(offered).toBe(result.records.length);
  expect(Object.values(accounts).reduce((sum, count) => sum + count, 0)).toBe(offered);
  for (const account of ACCOUNTS) {
    expect(result.records.filter((record) => record.account === account)).toHaveLength(accounts[account]);
  }
}

describe("a fleet in virtual time", () => {
  it("ends every request in one account and rejects what no worker can hold", () => {
    const result = simulate();
    expectToAddUp(result);
    expect(result.accounting.rejected).toBe(8);
    expect(result.accounting.completed).toBe(292);
    const rejected = result.records.find(({ account }) => account === "rejected");
    expect(rejected?.failure?.message).toContain("KV blocks to completion, the pool has 119");
    for (const record of result.records.filter(({ account }) => account === "completed")) {
      const times = record.tokenTimes === undefined ? undefined : chunkTimesNs(record.tokenTimes);
      expect(times).toHaveLength(record.outputTokens);
      expect(times?.[0]).toBe(record.firstContentNs);
      expect(times?.at(-1)).toBe(record.lastContentNs);
      expect(record.placedNs).toBeGreaterThanOrEqual(record.intendedNs);
    }
  });

  it("gives the same result for the same seed, whatever ran before", () => {
    expect(simulate()).toEqual(simulate());
    const lossy = (): FleetResult =>
      simulate(
        { policy: "power-of-two" },
        { seed: 9, delays: { kvEvents: { delayNs: 5e6, batchNs: 1e7, lossShare: 0.1 } } },
      );
    expect(lossy()).toEqual(lossy());
  });

  it("says how each worker was used: busy, running, queued, KV in use, evicted, preempted", () => {
    const { workers, inFlightSpread, endNs } = simulate({ limits: { ...LIMITS, poolBlocks: 60 } });
    expect(workers.map(({ worker }) => worker)).toEqual(["a", "b", "c"]);
    expect(workers.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
    for (const worker of workers) {
      expect(worker.busyShare).toBeGreaterThan(0.1);
      expect(worker.busyShare).toBeLessThanOrEqual(1);
      expect(worker.inFlightMax).toBeGreaterThanOrEqual(worker.inFlightMean);
      expect(worker.kvOccupancyMax).toBeGreaterThan(worker.kvOccupancyMean);
      expect(worker.kvOccupancyMax).toBeLessThanOrEqual(1);
      expect(worker.evictions).toBeGreaterThan(0);
      expect(worker.preemptions).toBeGreaterThan(0);
      expect(worker.queueMax).toBeGreaterThan(0);
      const { meanRunning, maxRunning } = worker.engine;
      expect(meanRunning).toBeGreaterThan(0);
      expect(maxRunning).toBeGreaterThan(meanRunning);
      expect(maxRunning).toBeLessThanOrEqual(LIMITS.maxSequences);
    }
    expect(inFlightSpread.max).toBeGreaterThanOrEqual(inFlightSpread.mean);
    expect(endNs).toBeGreaterThan(10 * NS_PER_SECOND);
  });

  it("says how each worker was used in a window, which parts of a run add up to", () => {
    const limits = { ...LIMITS, poolBlocks: 60 };
    const source = (): WorkloadSource => new Schedule(traceOf(300, 60));
    const whole = simulate({ limits, source: source() });
    const edges = [0, 3.000_000_001 * NS_PER_SECOND, 7 * NS_PER_SECOND, whole.endNs];
    const parts = edges.slice(1).map((endNs, at) => {
      const result = simulate({ limits, source: source() }, { window: { startNs: edges[at], endNs } });
      expect(result.records).toEqual(whole.records);
      return result.workers.map(({ inWindow }) => inWindow!);
    });
    for (const [at, worker] of whole.workers.entries()) {
      const own = parts.map((workers) => workers[at]);
      const sum = (of: (figures: (typeof own)[number], part: number) => number): number =>
        own.reduce((before, figures, part) => before + of(figures, part), 0);
      const seconds = (part: number): number => edges[part + 1] - edges[part];
      expect(sum(({ busyShare }, part) => busyShare * seconds(part))).toBeCloseTo(worker.engine.busyNs, 3);
      expect(sum(({ evictions }) => evictions)).toBe(worker.evictions);
      expect(sum(({ preemptions }) => preemptions)).toBe(worker.preemptions);
      expect(Math.max(...own.map(({ queueMax }) => queueMax))).toBe(worker.queueMax);
      expect(Math.max(...own.map(({ kvOccupancyMax }) => kvOccupancyMax))).toBe(worker.kvOccupancyMax);
      const held = sum((figures, part) => figures.kvOccupancyMean * figures.busyShare * seconds(part));
      expect(held / worker.engine.busyNs).toBeCloseTo(worker.kvOccupancyMean, 9);
      expect(own[1].evictions).toBeLessThan(worker.evictions);
    }
  });

  it("measures a worker up to the last request where a window has no end", () => {
    const result = simulate({}, { window: { startNs: 0, endNs: Number.POSITIVE_INFINITY } });
    const endNs = Math.max(...result.records.map(({ intendedNs }) => intendedNs));
    const told = simulate({}, { window: { startNs: 0, endNs } });
    expect(endNs).toBeLessThan(result.endNs);
    expect(result.workers.map(({ inWindow }) => inWindow)).toEqual(told.workers.map(({ inWindow }) => inWindow));
  });

  it("finds more in the caches when the router looks at them", () => {
    const hits = (policy: string): number =>
      simulate({ policy, source: new Schedule(traceOf(300, 500, 30)) }).workers.reduce(
        (sum, w) => sum + w.engine.cachedTokens,
        0,
      );
    expect(hits("kv-cost")).toBeGreaterThan(1.1 * hits("round-robin"));
  });
});

describe("decode steps run together in a fleet", () => {
  for (const policy of ["round-robin", "kv-cost"]) {
    it(`change nothing under ${policy}, with preemption and requests in the middle of a run`, () => {
      const crowded = { ...LIMITS, poolBlocks: 60 };
      const run = (coalesce: boolean): FleetResult => simulate({ policy, limits: crowded }, { coalesce });
      const together = run(true);
      const single = run(false);
      expect(comparable(together)).toEqual(comparable(single));
      expect(single.workers.reduce((sum, { preemptions }) => sum + preemptions, 0)).toBeGreaterThan(10);
      expect(together.counts.engineRuns).toBeLessThan(0.7 * single.counts.engineRuns);
    });
  }

  it("change nothing with delays, batches, losses and a queue in the router", () => {
    const run = (coalesce: boolean): FleetResult =>
      simulate(
        { admission: { mode: "queue", watermarks: { batchSlotsFraction: 0.3 } } },
        {
          coalesce,
          delays: {
            frontendNs: 4 * NS_PER_MS,
            routerToWorkerNs: 500_000,
            workerToClientNs: 700_000,
            kvEvents: { delayNs: 3 * NS_PER_MS, batchNs: 20 * NS_PER_MS, lossShare: 0.05 },
            growth: { delayNs: 2 * NS_PER_MS, batchNs: 0, lossShare: 0 },
            ended: { delayNs: 2 * NS_PER_MS, batchNs: 0, lossShare: 0 },
          },
        },
      );
    expect(comparable(run(true))).toEqual(comparable(run(false)));
  });
});

describe("what lies between clients, router and workers", () => {
  it("adds to the time to the first token", () => {
    const one = (): WorkloadSource => new Schedule(traceOf(1, 0));
    const ttft = (options: Partial<FleetOptions>): number => {
      const [{ firstContentNs = 0, intendedNs }] = simulate({ source: one() }, options).records;
      return firstContentNs - intendedNs;
    };
    const delays = { clientToRouterNs: 1000, frontendNs: 200, routerToWorkerNs: 30, workerToClientNs: 4 };
    expect(ttft({ delays }) - ttft({})).toBe(1234);
  });

  it("makes the router predict from an older view", () => {
    const exact = (channel: Partial<ChannelOptions>): number => {
      const { records } = simulate({}, { delays: { kvEvents: { ...IDEAL_CHANNEL, ...channel } } });
      return records.filter((r) => r.predictedCachedTokens === r.observedCachedTokens).length;
    };
    expect(exact({})).toBeGreaterThan(exact({ delayNs: 20 * NS_PER_SECOND }));
    expect(exact({})).toBeGreaterThan(exact({ batchNs: 20 * NS_PER_SECOND }));
  });

  it("knows without events what was answered, as whoever passes answers on does", () => {
    const { parameters } = conversationPreset("system-prompt");
    const source = new ClosedLoop(new Conversations(parameters, new Rng(1)), { concurrency: 3 });
    const limits = { ...LIMITS, poolBlocks: 9000, maxTokensPerStep: 2048 };
    const router = new Router(createPolicy("kv-cost", {}), {
      blockTokens: BLOCK_TOKENS,
      maxReplicas: 1,
      maxBlocks: 9000,
    });
    const { records } = simulateFleet({
      router,
      workers: [{ name: "a", engine: { profile: VLLM, limits, timer } }],
      source,
      blockTokens: BLOCK_TOKENS,
      offerUntilNs: 60 * NS_PER_SECOND,
      delays: { ended: { ...IDEAL_CHANNEL, delayNs: NS_PER_MS } },
    });
    const later = records.filter(({ turn }) => turn > 0);
    expect(later.length).toBeGreaterThan(10);
    for (const { observedCachedTokens, predictedCachedTokens } of later) {
      expect(predictedCachedTokens).toBe(observedCachedTokens);
    }
  });

  it("loses events, which the router notices and makes up for", () => {
    for (const feed of [
      { replayDepth: 10_000, snapshot: false },
      { replayDepth: 0, snapshot: true },
      { replayDepth: 0, snapshot: false },
    ]) {
      const result = simulate({}, { feed, delays: { kvEvents: { ...IDEAL_CHANNEL, lossShare: 0.2 } } });
      expect(result.counts.kvEventsLost).toBeGreaterThan(50);
      expect(result.accounting.completed).toBe(292);
    }
  });

  it("may lose the news of an end, and the request is still served", () => {
    const result = simulate({}, { delays: { ended: { ...IDEAL_CHANNEL, lossShare: 0.5 } } });
    expect(result.counts.signalsLost).toBeGreaterThan(50);
    expect(result.accounting.completed).toBe(292);
  });
});

describe("clients", () => {
  it("of a closed loop keep a number of conversations under way, whose turns find each other in the cache", () => {
    const { parameters } = conversationPreset("system-prompt");
    const source = new ClosedLoop(new Conversations(parameters, new Rng(1)), { concurrency: 9 });
    const limits = { ...LIMITS, poolBlocks: 3000, maxTokensPerStep: 2048 };
    const result = simulate(
      { source, profile: TRTLLM, limits },
      { offerUntilNs: 60 * NS_PER_SECOND, drainNs: 30 * NS_PER_SECOND },
    );
    expectToAddUp(result);
    expect(result.accounting.completed).toBe(result.accounting.offered);
    expect(result.accounting.unfinished).toBe(0);
    const inFlight = result.workers.reduce((sum, { inFlightMean }) => sum + inFlightMean, 0);
    expect(inFlight).toBeLessThanOrEqual(9);
    const later = result.records.filter(({ turn }) => turn > 0);
    expect(later.length).toBeGreaterThan(15);
    expect(later.filter((r) => (r.observedCachedTokens as number) > 0).length).toBeGreaterThan(0.7 * later.length);
  });

  it("are not waited for longer than the drain, and what is open then is unfinished", () => {
    const result = simulate({}, { offerUntilNs: 8 * NS_PER_SECOND, drainNs: NS_PER_SECOND });
    expectToAddUp(result);
    expect(result.endNs).toBe(9 * NS_PER_SECOND);
    expect(result.accounting.unfinished).toBeGreaterThan(0);
    const unfinished = result.records.filter(({ account }) => account === "unfinished");
    expect(unfinished.every(({ endNs }) => endNs === undefined)).toBe(true);
    const begun = unfinished.filter(({ outputTokens }) => outputTokens > 0);
    expect(begun.length).toBeGreaterThan(0);
    for (const { firstContentNs = NaN, lastContentNs = NaN, observedCachedTokens } of begun) {
      // Its tokens came until the end, a step more or less, and not all of them with the first.
      expect(lastContentNs).toBeGreaterThanOrEqual(firstContentNs);
      expect(result.endNs - lastContentNs).toBeLessThan(NS_PER_SECOND / 5);
      expect(observedCachedTokens).toBeGreaterThanOrEqual(0);
    }
    expect(begun.some((r) => (r.lastContentNs ?? 0) > (r.firstContentNs ?? 0))).toBe(true);
  });

  it.each([
    ["unfinished", { offerUntilNs: 8 * NS_PER_SECOND, drainNs: NS_PER_SECOND }],
    ["timedOut", { timeoutNs: 1.2 * NS_PER_SECOND }],
  ])("have the times of all tokens that an answer had which is %s", (account, options) => {
    const { records } = simulate({ limits: { ...LIMITS, poolBlocks: 60 } }, options);
    const begun = records.filter((one) => one.account === account && one.outputTokens > 0);
    expect(begun.length).toBeGreaterThan(5);
    for (const { tokenTimes, outputTokens, firstContentNs, lastContentNs = NaN } of begun) {
      const times = tokenTimes === undefined ? undefined : chunkTimesNs(tokenTimes);
      expect(times?.length).toBe(outputTokens);
      expect(times?.[0]).toBe(firstContentNs);
      expect(times?.at(-1)).toBeLessThanOrEqual(lastContentNs);
    }
    const last = begun.filter(({ tokenTimes, lastContentNs }) => {
      return tokenTimes !== undefined && chunkTimesNs(tokenTimes)?.at(-1) === lastContentNs;
    });
    expect(last.length).toBeGreaterThan(0);
  });

  it("give up after a time, which frees the worker", () => {
    const patient = simulate();
    const result = simulate({}, { timeoutNs: 1.2 * NS_PER_SECOND });
    expectToAddUp(result);
    expect(result.accounting.timedOut).toBeGreaterThan(20);
    for (const record of result.records.filter(({ account }) => account === "timedOut")) {
      expect((record.endNs ?? 0) - record.intendedNs).toBe(1.2 * NS_PER_SECOND);
    }
    expect(result.endNs).toBeLessThan(patient.endNs);
  });

  it("are turned away with a reason where the router sheds", () => {
    const watermarks = { batchSlotsFraction: 0.25 };
    const result = simulate({ admission: { mode: "shed", watermarks } });
    expectToAddUp(result);
    expect(result.accounting.shed).toBeGreaterThan(20);
    expect(result.records.find(({ account }) => account === "shed")?.shedReason?.knob).toBe("batchSlotsFraction");
  });
});

describe("a fleet without workers", () => {
  it("is refused", () => expect(() => simulate({}, { workers: [] })).toThrow("at least one worker"));
});
