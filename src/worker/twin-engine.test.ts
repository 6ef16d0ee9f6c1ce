import { describe, expect, test } from "vitest";
import { VirtualTimers } from "../../examples/slice/virtual-timers.ts";
import { sequenceHashes } from "../core/hash.ts";
import { KvIndex } from "../core/kv-index/kv-index.ts";
import type { KvEvent } from "../core/kv-index/types.ts";
import { type EngineProfile, TRTLLM, VLLM } from "../sim/engine/profile.ts";
import { nearestConstants } from "../sim/timing/constants.ts";
import { findGpu } from "../sim/timing/gpus.ts";
import { findModel } from "../sim/timing/models.ts";
import { StepTimer } from "../sim/timing/step-timer.ts";
import type { StoredContent } from "../wire/kv-events/engine-encoder.ts";
import type { EngineJob, EngineTicket } from "./engine.ts";
import type { Timer } from "./timers.ts";
import { TwinEngine } from "./twin-engine.ts";

const BLOCK_TOKENS = 16;
const ANSWER = tokens(9000, 20);

function tokens(from: number, count: number): Uint32Array {
  return Uint32Array.from({ length: count }, (_, i) => from + i);
}

function stepTimer(): StepTimer {
  const [model, gpu] = [findModel("llama-3.1-8b"), findGpu("h100")];
  if (model === undefined || gpu === undefined) throw new Error("the model or the card is not known");
  const { constants } = nearestConstants("vllm", "", "bf16", gpu.generation);
  return new StepTimer({ model, gpu, tensorParallel: 1, weights: "bf16", kv: "bf16", constants });
}

/** Timers that ring too late. */
class LateTimers extends VirtualTimers {
  readonly #latenessNs: number;

  constructor(latenessNs: number) {
    super();
    this.#latenessNs = latenessNs;
  }

  override at(timeNs: number, callback: () => void): Timer {
    return super.at(timeNs + this.#latenessNs, callback);
  }
}

interface Bench {
  readonly engine: TwinEngine;
  readonly timers: VirtualTimers;
  /** Times in microseconds. */
  readonly log: string[];
  readonly events: { readonly event: KvEvent; readonly content: StoredContent | undefined }[];
  readonly ask: (name: string, job: Partial<EngineJob> & Pick<EngineJob, "promptTokens">) => EngineTicket;
  readonly run: () => void;
}

function bench(profile: EngineProfile = VLLM, poolBlocks = 500, timers = new VirtualTimers()): Bench {
  const log: string[] = [];
  const events: Bench["events"] = [];
  const engine = new TwinEngine({
    profile,
    limits: {
      blockTokens: BLOCK_TOKENS,
      poolBlocks,
      maxSequences: 8,
      maxTokensPerStep: 2048,
      chunkedPrefill: true,
      prefixReuse: true,
    },
    timer: stepTimer(),
    incarnation: "life-1",
    timers,
    publish: (event, content) => events.push({ event, content }),
  });
  const note = (what: string): number => log.push(`${Math.round(timers.nowNs() / 1000)} ${what}`);
  const ask: Bench["ask"] = (name, job) =>
    engine.submit(
      { answerTokens: ANSWER, hasEndToken: true, ...job },
      {
        refused: (reason) => note(`${name} refused: ${reason}`),
        grew: (count) => note(`${name} +${count}`),
        finished: (cached) => note(`${name} finished, ${cached} cached`),
      },
    );
  const run = (): void => {
    while (timers.nextNs < Infinity) timers.runNext();
  };
  return { engine, timers, log, events, ask, run };
}

const about = (log: readonly string[], name: string): string[] =>
  log.map((line) => line.split(" ").slice(1).join(" ")).filter((line) => line.startsWith(`${name} `));

describe("the twin's engine under a clock", () => {
  test("tells each token when its step ends, the one that ends the answer included", () => {
    const { ask, log, run } = bench();
    ask("a", { promptTokens: tokens(1, 100) });
    run();
    expect(about(log, "a")).toEqual([...Array.from({ length: 21 }, () => "a +1"), "a finished, 0 cached"]);
    const times = log.slice(0, 21).map((line) => Number.parseInt(line, 10));
    expect(new Set(times).size).toBe(21);
  });

  test("takes the time that the pure engine says, however late its timers ring", () => {
    const exact = bench();
    exact.ask("a", { promptTokens: tokens(1, 100) });
    exact.run();
    const endNs = exact.timers.nowNs();
    const late = bench(VLLM, 500, new LateTimers(2 * endNs));
    late.ask("a", { promptTokens: tokens(1, 100) });
    late.run();
    // The first timer rang after everything was over, so all tokens came together.
    expect(about(late.log, "a")).toEqual(["a +21", "a finished, 0 cached"]);
    expect(late.engine.stats).toEqual(exact.engine.stats);
  });

  test("finds every full block of the turn before, prompt and answer, whatever the lengths", () => {
    for (let length = 90; length < 90 + BLOCK_TOKENS; length++) {
      const { ask, log, run } = bench();
      const prompt = tokens(1, length);
      ask("first", { promptTokens: prompt });
      run();
      ask("second", { promptTokens: Uint32Array.of(...prompt, ...ANSWER, ...tokens(5000, 40)) });
      run();
      const whole = Math.floor((length + ANSWER.length) / BLOCK_TOKENS) * BLOCK_TOKENS;
      expect(log.at(-1)).toMatch(new RegExp(` second finished, ${whole} cached$`));
    }
  });

  test("goes on inside a block where the engine reuses parts of blocks", () => {
    const { ask, log, run } = bench(TRTLLM);
    const prompt = tokens(1, 100);
    ask("first", { promptTokens: prompt });
    run();
    ask("second", { promptTokens: Uint32Array.of(...prompt, ...ANSWER, ...tokens(5000, 40)) });
    ask("other", { promptTokens: Uint32Array.of(...prompt, ...tokens(7000, 40)) });
    run();
    expect(log.some((line) => line.endsWith(" second finished, 120 cached"))).toBe(true);
    expect(log.some((line) => line.endsWith(" other finished, 96 cached"))).toBe(true);
  });

  test("refuses what can never run, with the reason", () => {
    const { ask, log, run } = bench(VLLM, 10);
    ask("a", { promptTokens: tokens(1, 400) });
    run();
    expect(log).toEqual(["0 a refused: needs 27 KV blocks to completion, the pool has 9"]);
  });

  test("tells nothing more of a cancelled job and gives its blocks back", () => {
    const { ask, log, engine, run, timers } = bench();
    const ticket = ask("a", { promptTokens: tokens(1, 100) });
    timers.runNext();
    timers.runNext();
    const heard = log.length;
    ticket.cancel();
    ticket.cancel();
    run();
    expect(log).toHaveLength(heard);
    expect(engine.load).toMatchObject({ running: 0, waiting: 0, heldBlocks: 0 });
  });

  test("publishes events with the tokens of their blocks, and a snapshot of the same state", () => {
    const { ask, engine, events, run } = bench();
    ask("a", { promptTokens: tokens(1, 100) });
    run();
    const context = Uint32Array.of(...tokens(1, 100), ...ANSWER);
    const stored = events.flatMap(({ content }) => [...(content?.tokens ?? [])]);
    expect(stored).toEqual([...context.subarray(0, 7 * BLOCK_TOKENS)]);
    expect(events.map(({ event }) => event.eventId)).toEqual(events.map((_, i) => i));
    const followed = new KvIndex({ maxReplicas: 1, maxBlocks: 1000 });
    for (const { event } of events) followed.apply(0, event.tier, event);
    const snapshot = engine.snapshot();
    const restored = new KvIndex({ maxReplicas: 1, maxBlocks: 1000 });
    restored.restore(0, snapshot.runs);
    const sequence = sequenceHashes(context, BLOCK_TOKENS);
    expect(snapshot.lastEventId).toBe(events.length - 1);
    expect([followed, restored].map((index) => index.match(sequence, 7).confirmed[0])).toEqual([7, 7]);
  });

  test("counts the step under way as busy time", () => {
    const { ask, engine, timers } = bench();
    ask("a", { promptTokens: tokens(1, 2000) });
    const endNs = timers.nextNs;
    expect([0, endNs / 2, 2 * endNs].map((nowNs) => engine.busyNs(nowNs))).toEqual([0, endNs / 2, endNs]);
  });
});
