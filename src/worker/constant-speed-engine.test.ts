import { describe, expect, test } from "vitest";
import { VirtualTimers } from "../../examples/slice/virtual-timers.ts";
import type { KvEvent } from "../core/kv-index/types.ts";
import { ConstantSpeedEngine } from "./constant-speed-engine.ts";

const ANSWER = Uint32Array.of(900, 901, 902, 903);

function tokens(from: number, count: number): Uint32Array {
  return Uint32Array.from({ length: count }, (_, i) => from + i);
}

/** An engine of 10 µs per prompt token, 1 ms per answer token, blocks of 4; its log has times in microseconds. */
function engine(batchSlots = 8): {
  engine: ConstantSpeedEngine;
  events: KvEvent[];
  log: string[];
  ask: typeof ask;
  run: () => void;
} {
  const timers = new VirtualTimers();
  const events: KvEvent[] = [];
  const log: string[] = [];
  const made = new ConstantSpeedEngine({
    timers,
    blockTokens: 4,
    kvBlocks: 100,
    batchSlots,
    prefillUsPerToken: 10,
    decodeMsPerToken: 1,
    incarnation: "life-1",
    publish: (event) => events.push(event),
  });
  const note = (what: string): number => log.push(`${timers.nowNs() / 1000} ${what}`);
  const ask = (name: string, promptTokens: Uint32Array): { cancel(): void } =>
    made.submit(
      { promptTokens, answerTokens: ANSWER, hasEndToken: false },
      {
        refused: (reason) => note(`${name} refused, ${reason}`),
        grew: (more) => note(`${name} +${more}`),
        finished: (cached) => note(`${name} finished, ${cached} cached`),
      },
    );
  const run = (): void => {
    while (timers.nextNs < Infinity) timers.runNext();
  };
  return { engine: made, events, log, ask, run };
}

describe("the constant-speed engine", () => {
  test("computes the prompt, then one token after another", () => {
    const { ask, log, run } = engine();
    ask("a", tokens(1, 10));
    run();
    expect(log).toEqual(["100 a +1", "1100 a +1", "2100 a +1", "3100 a +1", "3100 a finished, 0 cached"]);
  });

  test("skips what is cached of a prompt, answers included, but always computes the last token", () => {
    const { ask, log, run } = engine();
    ask("a", tokens(1, 10));
    run();
    ask("b", Uint32Array.of(...tokens(1, 10), ...ANSWER, 5, 6));
    run();
    expect(log).toContain("3140 b +1");
    expect(log.at(-1)).toMatch(/b finished, 12 cached$/);
    ask("c", tokens(1, 8));
    run();
    expect(log.at(-1)).toMatch(/c finished, 7 cached$/);
  });

  test("computes one prompt at a time, so that the second finds what the first left", () => {
    const { ask, log, run } = engine();
    ask("a", tokens(1, 10));
    ask("b", tokens(1, 10));
    run();
    expect([log[0], log[1]]).toEqual(["100 a +1", "120 b +1"]);
    expect(log.filter((line) => line.includes("finished"))).toEqual([
      "3100 a finished, 0 cached",
      "3120 b finished, 8 cached",
    ]);
  });

  test("lets requests wait that find no batch slot", () => {
    const { ask, log, run } = engine(1);
    ask("a", tokens(1, 10));
    ask("b", tokens(50, 10));
    run();
    expect(log.filter((line) => line.includes("b"))[0]).toBe("3200 b +1");
  });

  test("goes on with the next when one is cancelled, waiting or running", () => {
    const { ask, log, run } = engine(1);
    const first = ask("a", tokens(1, 10));
    const second = ask("b", tokens(50, 10));
    ask("c", tokens(80, 10));
    second.cancel();
    first.cancel();
    first.cancel();
    run();
    expect(log[0]).toBe("100 c +1");
    expect(log).toHaveLength(5);
  });

  test("numbers its events from 0 and snapshots the same state", () => {
    const { engine: made, events, ask, run } = engine();
    ask("a", tokens(1, 10));
    run();
    expect(events.map(({ eventId, incarnation, kind }) => `${incarnation} ${eventId} ${kind}`)).toEqual([
      "life-1 0 stored",
      "life-1 1 stored",
    ]);
    const { incarnation, lastEventId, runs } = made.snapshot();
    expect({ incarnation, lastEventId, blocks: runs.map(({ sequence }) => sequence.length / 2) }).toEqual({
      incarnation: "life-1",
      lastEventId: 1,
      blocks: [3],
    });
  });
});
