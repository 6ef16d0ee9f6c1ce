import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ROOT_HI, ROOT_LO, chainHashes, hashText } from "../../core/hash.ts";
import type { ReplicaSnapshot } from "../../core/kv-index/types.ts";
import { mix32 } from "../../core/rng.ts";
import { chunkTimesNs } from "../../measure/token-gaps.ts";
import { nearestConstants, withoutGraphs } from "../timing/constants.ts";
import { findGpu, type GpuSpec } from "../timing/gpus.ts";
import { findModel, type ModelShape } from "../timing/models.ts";
import { StepTimer } from "../timing/step-timer.ts";
import { Engine } from "./engine.ts";
import type { TimedKvEvent } from "./kv-event-log.ts";
import { type EngineInput, driveEngine } from "./single-engine.ts";
import { type EngineProfile, SGLANG, TRTLLM, VLLM } from "./profile.ts";

const gpu = findGpu("A100-40GB") as GpuSpec;
const { constants } = nearestConstants("vllm", "", "bf16", gpu.generation);
const timerWith = (isEager: boolean): StepTimer =>
  new StepTimer({
    model: findModel("qwen3-8b") as ModelShape,
    gpu,
    tensorParallel: 1,
    weights: "bf16",
    kv: "bf16",
    constants: isEager ? withoutGraphs(constants) : constants,
  });

/** Blocks of a few contents for the prompt, then blocks that are the request's own. */
function sequenceOf(stem: readonly number[], key: number, blocks: number): Uint32Array {
  const local = new Uint32Array(2 * blocks);
  for (let i = 0; i < blocks; i++) {
    const content = i < stem.length ? stem[i] : mix32(key * 1000 + i);
    local[2 * i] = mix32(content + 1);
    local[2 * i + 1] = mix32(content + 77);
  }
  chainHashes(local, blocks, ROOT_LO, ROOT_HI, local);
  return local;
}

interface Arrival {
  readonly gapNs: number;
  readonly stem: number[];
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly action: "submit" | "look" | "cancel";
}

const arrivalArbitrary: fc.Arbitrary<Arrival> = fc.record({
  gapNs: fc.oneof(fc.constant(0), fc.nat({ max: 40_000_000 }), fc.nat({ max: 400_000_000 })),
  stem: fc.array(fc.nat({ max: 1 }), { maxLength: 6 }),
  promptTokens: fc.integer({ min: 1, max: 60 }),
  outputTokens: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 90 })),
  action: fc.constantFrom(
    "submit" as const,
    "submit" as const,
    "submit" as const,
    "look" as const,
    "look" as const,
    "cancel" as const,
  ),
});

const BLOCK_TOKENS = 8;

function inputsOf(arrivals: readonly Arrival[]): EngineInput[] {
  let atNs = 0;
  return arrivals.map((arrival, key): EngineInput => {
    atNs += arrival.gapNs;
    if (arrival.action === "look") return { kind: "look", atNs };
    if (arrival.action === "cancel") return { kind: "cancel", atNs, key: Math.max(0, key - 3) };
    const { promptTokens, outputTokens, stem } = arrival;
    const blocks = Math.floor((promptTokens + outputTokens) / BLOCK_TOKENS);
    return {
      kind: "submit",
      atNs,
      request: { key, promptTokens, outputTokens, sequence: sequenceOf(stem, key, blocks) },
    };
  });
}

function hashesOf(numbers: Uint32Array): string[] {
  return Array.from({ length: numbers.length / 2 }, (_, i) => hashText(numbers[2 * i], numbers[2 * i + 1]));
}

/** What somebody holds the engine to have who has only heard its events; copies counted. */
function heldByEvents(events: readonly TimedKvEvent[]): string[] {
  const copies = new Map<string, number>();
  events.forEach(({ event }, index) => {
    expect(event.eventId).toBe(index);
    if (event.kind === "cleared") return;
    for (const hash of hashesOf(event.engine)) {
      copies.set(hash, (copies.get(hash) ?? 0) + (event.kind === "stored" ? 1 : -1));
    }
  });
  return [...copies].flatMap(([hash, count]) => Array.from({ length: count }, () => hash)).sort();
}

function heldBySnapshot({ runs }: ReplicaSnapshot): string[] {
  return runs.flatMap(({ sequence }) => hashesOf(sequence)).sort();
}

describe("decode steps run together", () => {
  const profiles: EngineProfile[] = [
    VLLM,
    { ...VLLM, name: "vllm without scheduling ahead", asyncSchedulingDepth: 0, eventFlush: "async" },
    TRTLLM,
    { ...TRTLLM, name: "trtllm with a batch wait", batchWaitSteps: 3, batchWaitTokensRatio: 0.6 },
    SGLANG,
    { ...SGLANG, name: "sglang in mixed steps", prefillSteps: "mixed", asyncSchedulingDepth: 0 },
  ];
  for (const profile of profiles) {
    it(`give, to the bit, what single steps give, with blocks short and requests in the middle (${profile.name})`, () => {
      let preemptions = 0;
      let evictions = 0;
      let saved = 0;
      fc.assert(
        fc.property(
          fc.array(arrivalArbitrary, { minLength: 1, maxLength: 40, size: "max" }),
          fc.integer({ min: 21, max: 36 }),
          fc.integer({ min: 2, max: 8 }),
          fc.boolean(),
          (arrivals, poolBlocks, maxSequences, isEager) => {
            const play = (coalesce: boolean) => {
              const engine = new Engine({
                profile,
                limits: {
                  blockTokens: BLOCK_TOKENS,
                  poolBlocks,
                  maxSequences,
                  maxTokensPerStep: 24,
                  chunkedPrefill: true,
                  prefixReuse: true,
                },
                timer: timerWith(isEager),
                incarnation: "one",
                kvEvents: true,
                coalesce,
                growth: "block",
                tokenTimes: true,
              });
              const output = driveEngine(engine, inputsOf(arrivals));
              const { runs, ...stats } = engine.stats;
              expect(heldByEvents(output.kvEvents)).toEqual(heldBySnapshot(engine.snapshot(Number.MAX_SAFE_INTEGER)));
              const finished = output.finished.map(({ tokenRuns, ...rest }) => ({
                ...rest,
                times: chunkTimesNs({ form: "runs", runs: tokenRuns }),
              }));
              return { runs, output: { ...output, finished }, stats };
            };
            const together = play(true);
            const single = play(false);
            expect(together.output).toEqual(single.output);
            expect(together.stats).toEqual(single.stats);
            preemptions += single.stats.preemptions;
            evictions += single.stats.evictedBlocks;
            saved += single.runs - together.runs;
            const submitted = arrivals.filter(({ action }) => action === "submit").length;
            expect(single.output.finished.length + single.output.refused.length).toBe(submitted);
            for (const { times, outputTokens } of single.output.finished) expect(times?.length).toBe(outputTokens);
          },
        ),
        { numRuns: 100 },
      );
      // The comparison means something only if the hard cases occurred.
      expect(evictions).toBeGreaterThan(500);
      expect(saved).toBeGreaterThan(1000);
      expect(preemptions > 20).toBe(profile.preempt !== "none");
    });
  }
});
