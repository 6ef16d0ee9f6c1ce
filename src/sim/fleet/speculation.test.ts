import { describe, expect, it } from "vitest";
import { createPolicy } from "../../core/policy/registry.ts";
import { Router } from "../../core/router.ts";
import { Schedule } from "../../workload/schedule.ts";
import { TraceSessions } from "../../workload/trace/trace-sessions.ts";
import { TRTLLM } from "../engine/profile.ts";
import { nearestConstants } from "../timing/constants.ts";
import { findGpu, type GpuSpec } from "../timing/gpus.ts";
import { findModel, type ModelShape } from "../timing/models.ts";
import { expectedTokens, SpeculativeTimer } from "../timing/speculation.ts";
import { StepTimer } from "../timing/step-timer.ts";
import type { FleetOptions, FleetResult } from "./types.ts";
import { simulateFleet } from "./virtual-fleet.ts";

const BLOCK_TOKENS = 32;
const DRAFTS = 3;
const ACCEPTANCE = 0.7;
const gpu = findGpu("H100") as GpuSpec;
const { constants } = nearestConstants("trtllm", "", "fp8", gpu.generation);
const timerOf = (name: string): StepTimer => {
  const model = findModel(name) as ModelShape;
  return new StepTimer({ model, gpu, tensorParallel: 2, weights: "fp8", kv: "fp8", constants });
};
const target = timerOf("llama-3.1-70b");
const speculation = {
  drafts: DRAFTS,
  acceptanceMean: ACCEPTANCE,
  acceptanceDeviation: 0.1,
  timer: new SpeculativeTimer(target, timerOf("llama-3.1-8b"), DRAFTS),
  seed: 11,
};
const limits = {
  blockTokens: BLOCK_TOKENS,
  poolBlocks: 500,
  maxSequences: 16,
  maxTokensPerStep: 4096,
  chunkedPrefill: true,
  prefixReuse: true,
};

/** 80 prompts in four families on two workers: Llama-70B, with an 8B draft or without. */
function simulate(isSpeculating: boolean, options: Partial<FleetOptions> = {}, policy = "kv-cost"): FleetResult {
  const rows = Array.from({ length: 80 }, (_, at) => ({
    timestampMs: 150 * at,
    inputTokens: 1024,
    outputTokens: 200,
    hashIds: [at % 4, 100 + at],
  }));
  const router = new Router(createPolicy(policy, {}), {
    blockTokens: BLOCK_TOKENS,
    maxReplicas: 2,
    maxBlocks: 4000,
    admission: { mode: "engine" },
  });
  const engine = { profile: TRTLLM, limits, timer: target, ...(isSpeculating ? { speculation } : {}) };
  return simulateFleet({
    router,
    workers: ["a", "b"].map((name) => ({ name, engine })),
    source: new Schedule(new TraceSessions(rows, 512)),
    blockTokens: BLOCK_TOKENS,
    feed: { replayDepth: 0, snapshot: true },
    tokenTimes: false,
    ...options,
  });
}

const meanTpotNs = ({ records }: FleetResult): number =>
  records.reduce((sum, r) => sum + ((r.lastContentNs ?? 0) - (r.firstContentNs ?? 0)) / 199, 0) / records.length;

describe("Llama-70B with an 8B draft in a fleet", () => {
  it("gives every request all of its tokens, sooner than without, and each worker says what share was accepted", () => {
    const drafted = simulate(true);
    const plain = simulate(false);
    for (const { accounting, records } of [drafted, plain]) {
      expect(accounting.completed).toBe(80);
      expect(records.every(({ outputTokens }) => outputTokens === 200)).toBe(true);
    }
    expect(meanTpotNs(drafted)).toBeLessThan(0.8 * meanTpotNs(plain));
    for (const { engine } of drafted.workers) {
      // Drafts count until the first that is refused, so the share is less than the chance of each.
      expect(engine.acceptanceRate).toBeCloseTo((expectedTokens(ACCEPTANCE, DRAFTS) - 1) / DRAFTS, 1);
      expect(engine.proposedDrafts).toBeGreaterThan(1000);
    }
    for (const { engine } of plain.workers) expect(engine).toMatchObject({ acceptanceRate: 0, proposedDrafts: 0 });
  });

  it("runs every step by itself, since each draws, so that running steps together changes nothing", () => {
    const drafted = simulate(true);
    expect(drafted.counts.engineRuns).toBe(drafted.counts.steps);
    expect(simulate(true, { coalesce: false })).toEqual(drafted);
    const plain = simulate(false);
    expect(plain.counts.engineRuns).toBeLessThan(0.8 * plain.counts.steps);
  });

  it("draws by request and seed, not by worker", () => {
    const steps = (result: FleetResult): number => result.workers.reduce((sum, w) => sum + w.engine.proposedDrafts, 0);
    // Elsewhere a request needs as many steps as here; with another seed it does not.
    expect(steps(simulate(true, {}, "round-robin"))).toBe(steps(simulate(true, {}, "least-loaded")));
    expect(steps(simulate(true, { seed: 1 }))).not.toBe(steps(simulate(true, { seed: 2 })));
  });

  it("reports the same share again for the same seed", () => expect(simulate(true)).toEqual(simulate(true)));
});
