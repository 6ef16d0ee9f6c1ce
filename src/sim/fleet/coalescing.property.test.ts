import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createPolicy } from "../../core/policy/registry.ts";
import type { RequestRecord } from "../../core/request-record.ts";
import { Router } from "../../core/router.ts";
import type { AdmissionOptions } from "../../core/router-options.ts";
import { chunkTimesNs } from "../../measure/token-gaps.ts";
import { Schedule } from "../../workload/schedule.ts";
import { TraceSessions } from "../../workload/trace/trace-sessions.ts";
import type { TraceRow } from "../../workload/trace/row.ts";
import { type EngineProfile, SGLANG, TRTLLM, VLLM } from "../engine/profile.ts";
import { nearestConstants } from "../timing/constants.ts";
import { findGpu, type GpuSpec } from "../timing/gpus.ts";
import { findModel, type ModelShape } from "../timing/models.ts";
import { StepTimer } from "../timing/step-timer.ts";
import type { ChannelOptions } from "./signal-channel.ts";
import type { FleetDelays, FleetResult } from "./types.ts";
import { simulateFleet } from "./virtual-fleet.ts";

const BLOCK_TOKENS = 8;
const gpu = findGpu("A100-40GB") as GpuSpec;
const { constants } = nearestConstants("vllm", "", "bf16", gpu.generation);
const model = findModel("qwen3-8b") as ModelShape;
const timer = new StepTimer({ model, gpu, tensorParallel: 1, weights: "bf16", kv: "bf16", constants });

const rowArbitrary = fc.record({
  gapMs: fc.oneof(fc.constant(0), fc.nat({ max: 60 }), fc.nat({ max: 300 })),
  hashIds: fc.array(fc.nat({ max: 2 }), { minLength: 1, maxLength: 7, size: "max" }),
  cut: fc.nat({ max: 7 }),
  outputTokens: fc.integer({ min: 1, max: 80 }),
});

const channelArbitrary: fc.Arbitrary<ChannelOptions> = fc.record({
  delayNs: fc.constantFrom(0, 1, 7_000_000, 400_000_000),
  batchNs: fc.constantFrom(0, 0, 50_000_000),
  lossShare: fc.constantFrom(0, 0, 0.2),
});

const delaysArbitrary: fc.Arbitrary<Partial<FleetDelays>> = fc.oneof(
  fc.constant({}),
  fc.record({
    clientToRouterNs: fc.constantFrom(0, 300_000),
    routerToWorkerNs: fc.constantFrom(0, 1, 2_000_000),
    workerToClientNs: fc.constantFrom(0, 500_000),
    kvEvents: channelArbitrary,
    firstToken: channelArbitrary,
    growth: channelArbitrary,
    ended: channelArbitrary,
  }),
);

const admissionArbitrary: fc.Arbitrary<AdmissionOptions> = fc.constantFrom(
  { mode: "engine" },
  { mode: "queue", watermarks: { batchSlotsFraction: 0.5 } },
  { mode: "shed", watermarks: { kvBlocksFraction: 1.2 } },
);

/**
 * Found by chance: an engine that tells what it took when a step begins was heard when the step ended, but inside a run of steps at
 * once. Gap in milliseconds, ids, tokens cut off and tokens of output.
 */
const TOLD_AT_THE_BEGINNING: readonly (readonly [number, number[], number, number])[] = [
  [0, [0], 0, 1],
  [0, [0], 0, 1],
  [0, [0], 0, 1],
  [104, [0], 0, 17],
  [0, [0], 0, 9],
  [217, [0], 0, 11],
  [47, [0], 0, 9],
  [0, [0, 0, 0, 0, 0], 0, 1],
  [22, [0], 0, 1],
  [9, [0], 0, 7],
  [23, [0], 0, 9],
  [0, [0], 0, 6],
  [52, [0], 0, 1],
  [0, [1, 0, 0, 0], 0, 3],
  [0, [0], 0, 1],
  [59, [0], 0, 1],
  [261, [0], 0, 1],
  [0, [0], 0, 1],
  [0, [0], 0, 1],
  [1, [1, 0], 0, 1],
  [31, [0], 0, 1],
  [137, [0, 0, 0, 0, 0, 0, 0], 1, 22],
  [0, [2, 0, 0, 0, 0], 5, 63],
  [0, [0], 0, 1],
];

function rowsOf(drawn: readonly { gapMs: number; hashIds: number[]; cut: number; outputTokens: number }[]): TraceRow[] {
  let timestampMs = 0;
  return drawn.map(({ gapMs, hashIds, cut, outputTokens }) => {
    timestampMs += gapMs;
    return { timestampMs, inputTokens: hashIds.length * BLOCK_TOKENS - cut, outputTokens, hashIds };
  });
}

/** All that a run lets out, without how its decode steps were run. */
function visible(result: FleetResult): unknown {
  const { counts, workers, records, ...rest } = result;
  return {
    ...rest,
    kvEvents: counts.kvEvents,
    kvEventsLost: counts.kvEventsLost,
    steps: counts.steps,
    workers: workers.map(({ engine: { runs: _runs, ...engine }, ...worker }) => ({ ...worker, engine })),
    records: records.map(({ tokenTimes, ...record }: RequestRecord) => ({
      ...record,
      times: tokenTimes === undefined ? undefined : chunkTimesNs(tokenTimes),
    })),
  };
}

/** That somebody looks at engines in between changes nothing but what there is to see of it. */
function withoutFigures(result: unknown): unknown {
  return JSON.parse(JSON.stringify(result, (key, value: unknown) => (key === "inWindow" ? undefined : value)));
}

describe("decode steps run together in any fleet", () => {
  it("change nothing that clients, router or reports can see, nor does who looks at engines meanwhile", () => {
    fc.assert(
      fc.property(
        fc.array(rowArbitrary, { minLength: 5, maxLength: 60, size: "max" }),
        fc.constantFrom<EngineProfile>(
          VLLM,
          TRTLLM,
          SGLANG,
          { ...VLLM, eventFlush: "async", asyncSchedulingDepth: 0 },
          { ...TRTLLM, batchWaitSteps: 4, batchWaitTokensRatio: 0.7 },
        ),
        fc.constantFrom("round-robin", "kv-cost", "least-loaded", "product"),
        delaysArbitrary,
        admissionArbitrary,
        fc.constantFrom(undefined, 1_500_000_000),
        fc.constantFrom(undefined, 700_000_000),
        fc.constantFrom({ replayDepth: 50, snapshot: false }, { replayDepth: 0, snapshot: true }, undefined),
        fc.constantFrom({ startNs: 300_000_001, endNs: 900_000_000 }, { startNs: 0, endNs: Infinity }),
        (drawn, profile, policy, delays, admission, timeoutNs, crashNs, feed, window) => {
          const run = (coalesce: boolean, isMetered = true): unknown => {
            const limits = {
              blockTokens: BLOCK_TOKENS,
              poolBlocks: 30,
              maxSequences: 4,
              maxTokensPerStep: 32,
              chunkedPrefill: true,
              prefixReuse: true,
            };
            const router = new Router(createPolicy(policy, {}), {
              blockTokens: BLOCK_TOKENS,
              maxReplicas: 2,
              maxBlocks: 1000,
              admission,
            });
            return visible(
              simulateFleet({
                ...(isMetered ? { window } : {}),
                router,
                workers: ["a", "b"].map((name) => ({
                  name,
                  engine: { profile, limits, timer },
                  ...(name === "a" && crashNs !== undefined ? { crashNs } : {}),
                })),
                source: new Schedule(new TraceSessions(rowsOf(drawn), BLOCK_TOKENS)),
                blockTokens: BLOCK_TOKENS,
                delays,
                ...(timeoutNs === undefined ? {} : { timeoutNs }),
                ...(feed === undefined ? {} : { feed }),
                offerUntilNs: 6_000_000_000,
                drainNs: 4_000_000_000,
                coalesce,
              }),
            );
          };
          expect(run(true)).toEqual(run(false));
          expect(withoutFigures(run(true))).toEqual(withoutFigures(run(true, false)));
        },
      ),
      {
        numRuns: 150,
        examples: [
          [
            TOLD_AT_THE_BEGINNING.map(([gapMs, hashIds, cut, outputTokens]) => ({ gapMs, hashIds, cut, outputTokens })),
            { ...VLLM, eventFlush: "async", asyncSchedulingDepth: 0 },
            "least-loaded",
            {
              clientToRouterNs: 0,
              routerToWorkerNs: 2_000_000,
              workerToClientNs: 0,
              kvEvents: { delayNs: 0, batchNs: 0, lossShare: 0.2 },
              firstToken: { delayNs: 0, batchNs: 0, lossShare: 0 },
              growth: { delayNs: 0, batchNs: 0, lossShare: 0.2 },
              ended: { delayNs: 400_000_000, batchNs: 0, lossShare: 0 },
            },
            { mode: "engine" },
            undefined,
            undefined,
            { replayDepth: 50, snapshot: false },
            { startNs: 0, endNs: Infinity },
          ],
        ],
      },
    );
  });
});
