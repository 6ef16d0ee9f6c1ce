import { describe, expect, it } from "vitest";
import { hashText } from "../../core/hash.ts";
import { SpeculativeTimer } from "../timing/speculation.ts";
import type { Engine } from "./engine.ts";
import type { EngineRequest } from "./engine-request.ts";
import { cachedOf, engineWith, eventLines, PLAIN, play, request, timerOf } from "./engine-scenario.ts";
import { engineProfile, type EngineProfile, SGLANG, TRTLLM, VLLM } from "./profile.ts";
import { driveEngine, type EngineInput, type EngineOutput } from "./single-engine.ts";

describe("when blocks become findable", () => {
  const twins = (profile: EngineProfile): number[] =>
    cachedOf(
      play(
        engineWith(profile, { maxTokensPerStep: 12 }),
        [0, request(0, [1, 2, 3, 4], 16, 3)],
        [0, request(1, [1, 2, 3, 4], 16, 3)],
      ),
    );

  it("lets a request of the same step find them if they are visible at schedule, and not if at the step's end", () => {
    const sameStep = (cacheVisibleAt: EngineProfile["cacheVisibleAt"]): number[] => {
      const engine = engineWith({ ...PLAIN, cacheVisibleAt });
      return cachedOf(play(engine, [0, request(0, [1, 2, 3, 4], 16, 3)], [0, request(1, [1, 2, 3, 4], 16, 3)]));
    };
    expect(sameStep("schedule")).toEqual([0, 12]);
    expect(sameStep("stepEnd")).toEqual([0, 0]);
  });

  it("makes the second of two equal requests compute what the first has not published yet", () => {
    // 12 tokens a step: the first computes 12, then 4 beside which the second has room for 8.
    expect(twins({ ...PLAIN, cacheVisibleAt: "schedule" })).toEqual([0, 12]);
    expect(twins({ ...PLAIN, cacheVisibleAt: "stepEnd" })).toEqual([0, 12]);
    expect(twins({ ...PLAIN, cacheVisibleAt: "contextEnd" })).toEqual([0, 0]);
  });

  it("publishes answers as they fill, or when the request has ended", () => {
    const contents = [1, 2, 3, 4, 5];
    const storedAt = (profile: EngineProfile): number =>
      new Set(play(engineWith(profile), [0, request(0, contents, 8, 13)]).kvEvents.map(({ atNs }) => atNs)).size;
    expect(storedAt(PLAIN)).toBe(4);
    expect(storedAt({ ...PLAIN, outputVisibleAt: "finished" })).toBe(2);
  });

  it("lets the next turn find prompt and answer of the turn before", () => {
    const engine = engineWith(PLAIN);
    const output = play(engine, [0, request(0, [1, 2, 3, 4], 8, 9)], [900, request(1, [1, 2, 3, 4, 5], 18, 2)]);
    // The last sampled token was never computed, so 16 of 17 are there.
    expect(cachedOf(output)).toEqual([0, 16]);
  });
});

describe("what is computed again of a cached prompt", () => {
  const second = (profile: EngineProfile, more: Partial<EngineRequest> = {}): number =>
    cachedOf(
      play(engineWith(profile), [0, request(0, [1, 2, 3, 4], 16, 2)], [900, request(1, [1, 2, 3, 4], 16, 2, more)]),
    )[1];

  it("is its last block", () => expect(second({ ...PLAIN, recomputeLast: "block" })).toBe(12));
  it("is its last token", () => expect(second({ ...PLAIN, recomputeLast: "token" })).toBe(15));

  it("is everything without prefix reuse, and nothing is announced", () => {
    const engine = engineWith(PLAIN, { prefixReuse: false });
    const output = play(engine, [0, request(0, [1, 2], 8, 2)], [900, request(1, [1, 2], 8, 2)]);
    expect(cachedOf(output)).toEqual([0, 0]);
    expect(output.kvEvents).toEqual([]);
  });

  it("leaves out a part of a block where parts are reused", () => {
    const turns = (profile: EngineProfile): number =>
      cachedOf(
        play(
          engineWith(profile),
          [0, request(0, [1, 2, 3], 11, 3)],
          [900, request(1, [1, 2, 3, 8], 16, 2, { continuesTokens: 13 })],
        ),
      )[1];
    expect(turns({ ...PLAIN, partialReuse: false })).toBe(12);
    expect(turns({ ...PLAIN, partialReuse: true })).toBe(13);
  });
});

describe("eviction", () => {
  it("gives up the oldest prompt, its last blocks first, when room is needed", () => {
    const engine = engineWith(PLAIN, { poolBlocks: 8 });
    const first = request(0, [1, 2, 3, 4], 16, 1);
    const output = play(engine, [0, first], [300, request(1, [5, 6, 7], 12, 1)], [600, request(2, [8, 9, 10], 12, 1)]);
    const removed = output.kvEvents.filter(({ event }) => event.kind === "removed");
    expect(removed).toHaveLength(1);
    const [{ event }] = removed;
    const hashes = event.kind === "removed" ? event.engine : new Uint32Array(0);
    const { sequence } = first;
    expect(hashText(hashes[0], hashes[1])).toBe(hashText(sequence[6], sequence[7]));
    expect(hashText(hashes[2], hashes[3])).toBe(hashText(sequence[4], sequence[5]));
    expect(engine.stats.evictedBlocks).toBe(2);
  });

  it("announces every copy of a block, or only the first and the last", () => {
    // Both compute [1, 2], because neither is published before its context ends.
    const copies = (profile: EngineProfile): string[] =>
      eventLines(
        play(
          engineWith({ ...profile, cacheVisibleAt: "contextEnd" }, { poolBlocks: 8 }),
          [0, request(0, [1, 2], 8, 2)],
          [0, request(1, [1, 2], 8, 2)],
          [900, request(2, [5, 6, 7, 8, 9, 10, 11, 12], 30, 1)],
        ),
      );
    expect(copies({ ...PLAIN, duplicates: "perCopyEvents" })).toEqual([
      "stored 2",
      "stored 2",
      "removed 4",
      "stored 7",
    ]);
    expect(copies({ ...PLAIN, duplicates: "firstLastCopyEvents" })).toEqual(["stored 2", "removed 2", "stored 7"]);
  });

  it("sends events at the end of the step, or as they happen", () => {
    const at = (eventFlush: "stepEnd" | "async"): number =>
      play(engineWith({ ...PLAIN, eventFlush }), [5, request(0, [1, 2], 8, 2)]).kvEvents[0].atNs;
    expect(at("async")).toBe(5e6);
    expect(at("stepEnd")).toBeGreaterThan(5e6);
  });
});

describe("admission", () => {
  const secondStarts = (admission: EngineProfile["admission"], maxOutputTokens?: number): "at once" | "later" => {
    const engine = engineWith({ ...PLAIN, admission }, { poolBlocks: 12, maxTokensPerStep: 24 });
    const bound = maxOutputTokens === undefined ? {} : { maxOutputTokens };
    const output = play(
      engine,
      [0, request(0, [1, 2, 3, 4], 16, 8, bound)],
      [0, request(1, [5, 6, 7, 8, 9, 10], 24, 2, bound)],
    );
    const ends = new Map(output.finished.map(({ key, atNs }) => [key, atNs]));
    const first = output.firstTokens.find(({ key }) => key === 1)?.atNs ?? 0;
    return first > (ends.get(0) ?? 0) ? "later" : "at once";
  };

  it("needs room for the input", () => expect(secondStarts("fullInput")).toBe("at once"));
  it("needs room for input and output where it is to completion", () =>
    expect(secondStarts("toCompletion")).toBe("later"));

  it("believes the client's bound on the output where it is to completion", () => {
    const play2 = (maxOutputTokens: number): number => {
      const engine = engineWith({ ...PLAIN, admission: "toCompletion" }, { poolBlocks: 10 });
      const bound = { maxOutputTokens };
      play(engine, [0, request(0, [1, 2], 8, 4, bound)], [0, request(1, [3, 4], 8, 4, bound)]);
      return engine.stats.maxRunning;
    };
    expect(play2(4)).toBe(2);
    expect(play2(30)).toBe(1);
  });

  it("needs room for the first chunk only, where that is the rule", () => {
    const runningAt = (admission: EngineProfile["admission"]): number => {
      const engine = engineWith({ ...PLAIN, admission }, { poolBlocks: 10, maxTokensPerStep: 20 });
      play(engine, [0, request(0, [1, 2, 3, 4], 16, 20)], [0, request(1, [5, 6, 7, 8, 9, 10, 11, 12], 32, 2)]);
      return engine.stats.maxRunning;
    };
    expect(runningAt("fullInput")).toBe(1);
    expect(runningAt("firstChunk")).toBe(2);
  });

  it("stops at the first request without room, whoever is behind it", () => {
    const engine = engineWith(PLAIN, { poolBlocks: 10 });
    const output = play(
      engine,
      [0, request(0, [1, 2, 3, 4, 5], 20, 10)],
      [1, request(1, [11, 12, 13, 14, 15, 16], 24, 2)],
      [1, request(2, [21], 4, 2)],
    );
    expect(output.finished.map(({ key }) => key)).toEqual([0, 1, 2]);
    expect(engine.stats.maxQueued).toBe(2);
  });

  it("never gets the blocks that the engine keeps for itself", () => {
    const pool = (reservedBlocks: number): string | undefined =>
      engineWith({ ...PLAIN, reservedBlocks }, { poolBlocks: 5 }).submit(request(0, [1], 18, 3), 0);
    expect(pool(0)).toBeUndefined();
    expect(pool(1)).toBe("needs 5 KV blocks to completion, the pool has 4");
  });

  it("waits for a slot in the batch", () => {
    const engine = engineWith(PLAIN, { maxSequences: 1 });
    const output = play(engine, [0, request(0, [1], 4, 9)], [0, request(1, [2], 4, 2)]);
    expect(output.firstTokens[1].atNs).toBeGreaterThan(output.finished[0].atNs);
    expect(engine.stats.maxRunning).toBe(1);
  });
});

describe("prompts in steps", () => {
  it("are cut into chunks of what a step has left", () => {
    const engine = engineWith(PLAIN, { maxTokensPerStep: 10 });
    play(engine, [0, request(0, [1, 2, 3, 4, 5], 23, 1)]);
    expect(engine.stats.steps).toBe(3);
  });

  it("are cut at whole blocks where the engine wants that", () => {
    const engine = engineWith({ ...PLAIN, chunkIsWholeBlocks: true }, { maxTokensPerStep: 14, maxSequences: 2 });
    play(engine, [0, request(0, [1, 2, 3, 4, 5, 6], 27, 1)]);
    // 12 + 12 + 3 instead of 14 + 13.
    expect(engine.stats.steps).toBe(3);
  });

  it("wait until they fit whole where there are no chunks", () => {
    const engine = engineWith(PLAIN, { chunkedPrefill: false, maxTokensPerStep: 24 });
    const output = play(engine, [0, request(0, [1, 2, 3, 4], 16, 2)], [0, request(1, [5, 6, 7, 8], 16, 2)]);
    expect(output.firstTokens[1].atNs).toBeGreaterThan(output.firstTokens[0].atNs);
  });

  it("let decodes stand still where they are computed alone", () => {
    const gaps = (prefillSteps: "mixed" | "alone"): number => {
      const engine = engineWith({ ...PLAIN, prefillSteps }, { maxTokensPerStep: 16 });
      play(engine, [0, request(0, [1], 4, 9)], [0.001, request(1, [5, 6, 7, 8, 9, 10, 11, 12], 32, 1)]);
      return engine.stats.steps;
    };
    // Mixed, the three steps of the second prompt carry decodes too.
    expect(gaps("mixed")).toBe(9);
    expect(gaps("alone")).toBe(11);
  });
});

describe("preemption", () => {
  const crowd = (profile: EngineProfile): { output: EngineOutput; engine: Engine } => {
    const engine = engineWith(profile, { poolBlocks: 12 });
    const output = play(
      engine,
      [0, request(0, [1, 2, 3, 4, 5, 6], 12, 24)],
      [1, request(1, [11, 12, 13, 14, 15, 16], 12, 24)],
      [1.5, request(2, [21, 22, 23, 24], 8, 12)],
    );
    return { output, engine };
  };

  it("takes the request admitted last, which keeps its tokens and comes back first", () => {
    const { output, engine } = crowd(PLAIN);
    expect(engine.stats.preemptions).toBeGreaterThan(0);
    expect(output.finished.find(({ key }) => key === 0)?.preemptions).toBe(0);
    expect(output.finished.find(({ key }) => key === 2)?.preemptions).toBeGreaterThan(0);
    expect([...output.finished].sort((a, b) => a.key - b.key).map(({ outputTokens }) => outputTokens)).toEqual([
      24, 24, 12,
    ]);
    expect(output.firstTokens).toHaveLength(3);
  });

  it("takes the request with the least output where it retracts, of equals the longest, not the one admitted last", () => {
    // The second and the third begin in the same step; the second has the longer prompt.
    const givenWay = (preempt: EngineProfile["preempt"]): number[] => {
      const { output } = crowd({ ...PLAIN, preempt });
      return [...output.finished].sort((a, b) => a.key - b.key).map(({ preemptions }) => preemptions);
    };
    expect(givenWay("retract")).toEqual([0, 2, 0]);
    expect(givenWay("recomputeLast")).toEqual([0, 1, 2]);
  });

  it("never happens where admission is to completion", () => {
    const { engine } = crowd({ ...PLAIN, preempt: "none", admission: "toCompletion" });
    expect(engine.stats.preemptions).toBe(0);
  });
});

describe("scheduling ahead", () => {
  it("lets a finished request occupy one step more", () => {
    const steps = (asyncSchedulingDepth: 0 | 1): number => {
      const engine = engineWith({ ...PLAIN, asyncSchedulingDepth });
      play(engine, [0, request(0, [1], 4, 5)]);
      return engine.stats.steps;
    };
    expect(steps(0)).toBe(5);
    expect(steps(1)).toBe(6);
  });

  it("lets a newcomer miss the step that was scheduled before it came", () => {
    const first = (asyncSchedulingDepth: 0 | 1): number => {
      const engine = engineWith({ ...PLAIN, asyncSchedulingDepth });
      const output = play(engine, [0, request(0, [1], 4, 40)], [30, request(1, [2], 4, 2)]);
      return output.firstTokens[1].atNs;
    };
    expect(first(1)).toBeGreaterThan(first(0));
  });
});

describe("speculation", () => {
  const speculate = (profile: EngineProfile): { engine: Engine; output: EngineOutput } => {
    const engine = engineWith(
      profile,
      {},
      {
        speculation: {
          drafts: 3,
          acceptanceMean: 0.7,
          acceptanceDeviation: 0,
          seed: 7,
          timer: new SpeculativeTimer(timerOf("llama-3.1-70b"), timerOf("llama-3.1-8b"), 3),
        },
      },
    );
    const contents = Array.from({ length: 55 }, (_, i) => i);
    const output = play(engine, [0, request(0, contents, 16, 200)], [60_000, request(1, contents, 17, 2)]);
    return { engine, output };
  };

  it("yields the tokens asked for in fewer steps, and reports the acceptance", () => {
    const { engine, output } = speculate(PLAIN);
    expect(output.finished.map(({ outputTokens }) => outputTokens)).toEqual([200, 2]);
    expect(engine.stats.steps).toBeLessThan(110);
    expect(engine.stats.acceptanceRate).toBeGreaterThan(0.4);
    expect(engine.stats.acceptanceRate).toBeLessThan(0.7);
  });

  it("costs the last block of a hit where the engine drops it", () => {
    expect(cachedOf(speculate({ ...PLAIN, dropLastBlockWithSpec: true }).output)[1]).toBe(12);
    expect(cachedOf(speculate({ ...PLAIN, dropLastBlockWithSpec: false }).output)[1]).toBe(16);
  });
});

describe("what cannot run", () => {
  it("is refused when it comes, and the rest goes on", () => {
    const engine = engineWith(PLAIN, { poolBlocks: 10 });
    const output = play(engine, [0, request(0, [1], 38, 4)], [0, request(1, [1], 4, 2)], [0, request(2, [1], 37, 4)]);
    expect(output.refused).toEqual([{ key: 0, reason: "needs 11 KV blocks to completion, the pool has 10" }]);
    expect(output.finished.map(({ key }) => key).sort((a, b) => a - b)).toEqual([1, 2]);
    expect(engine.stats.rejected).toBe(1);
  });

  it("is refused where a prompt is longer than any step and there are no chunks", () => {
    const engine = engineWith(PLAIN, { chunkedPrefill: false, maxTokensPerStep: 16 });
    expect(play(engine, [0, request(0, [1], 17, 1)]).refused[0].reason).toContain("without chunked prefill takes 16");
  });

  it("is refused before the run where limits contradict one another", () => {
    expect(() => engineWith(PLAIN, { maxTokensPerStep: 4 })).toThrow("less than the 8 that 8 decoding requests take");
    expect(() => engineWith({ ...PLAIN, preempt: "none" })).toThrow("admission must be toCompletion");
    expect(() => engineWith(VLLM, { poolBlocks: 1 })).toThrow("vllm keeps 1 for itself");
    expect(() => engineWith(PLAIN, { blockTokens: 0 })).toThrow("blockTokens must be a whole number");
    expect(() => engineProfile("exllama")).toThrow("there are vllm, trtllm, sglang");
    expect(() => engineWith(PLAIN).submit(request(0, [1], 4, 0), 0)).toThrow("both must be whole and at least 1");
  });
});

describe("an engine that gets nowhere", () => {
  // No input makes an engine run for ever, so the guard is shown with a limit that an honest prompt exceeds. The request
  // admitted first is never preempted for others, and alone it fits: what does not fit an empty pool is refused when it
  // comes, and limits under which a step could have no room for a block are refused before the run. Retraction spares the
  // one with the most output, and among equals the shortest prompt. The guard is for the day when that is no longer so.
  it("is stopped with an error instead of running for ever", () => {
    const engine = engineWith(PLAIN, { maxTokensPerStep: 8 }, { mostFruitlessSteps: 2 });
    expect(() => play(engine, [0, request(0, [1], 40, 1)])).toThrow("makes no progress: 3 steps without a token");
  });

  it("is not one whose clients all give up before their first token", () => {
    const engine = engineWith(PLAIN, { maxTokensPerStep: 8 }, { mostFruitlessSteps: 2 });
    const impatient = Array.from({ length: 10 }, (_, key): EngineInput[] => [
      { kind: "submit", atNs: key * 20e6, request: request(key, [1], 40, 1) },
      // Long before the five steps of its prompt are over.
      { kind: "cancel", atNs: key * 20e6 + 1e6, key },
    ]).flat();
    const { finished } = driveEngine(engine, impatient);
    expect(finished.filter(({ isCancelled }) => isCancelled)).toHaveLength(10);
    expect(engine.stats.outputTokens).toBe(0);
  });
});

describe("an engine that dies", () => {
  it("keeps what it has done so far, however its decode steps were run", () => {
    const dead = (coalesce: boolean): unknown => {
      const engine = engineWith(VLLM, { poolBlocks: 12 }, { coalesce });
      let endNs: number | undefined;
      engine.submit(request(0, [1, 2], 8, 30), 0);
      for (let nowNs = 0; ; nowNs = endNs) {
        endNs = engine.beginStep(nowNs);
        if (endNs === undefined || endNs > 60e6) break;
        engine.endStep(endNs);
      }
      engine.die(60e6);
      expect(engine.isStepping).toBe(false);
      const { runs: _runs, ...stats } = engine.stats;
      expect(stats.outputTokens).toBeGreaterThan(1);
      expect(stats.finished).toBe(0);
      return stats;
    };
    expect(dead(true)).toEqual(dead(false));
  });
});

describe("cancelling", () => {
  it("frees the blocks of a running request after its step, and those of a waiting one at once", () => {
    const engine = engineWith(PLAIN, { maxSequences: 1 });
    const output = driveEngine(engine, [
      { kind: "submit", atNs: 0, request: request(0, [1, 2, 3], 8, 40) },
      { kind: "submit", atNs: 0, request: request(1, [4, 5], 8, 4) },
      { kind: "submit", atNs: 0, request: request(2, [6, 7], 8, 4) },
      { kind: "cancel", atNs: 30e6, key: 0 },
      { kind: "cancel", atNs: 30e6, key: 1 },
    ]);
    expect(output.finished.map(({ key, isCancelled }) => [key, isCancelled])).toEqual([
      [1, true],
      [0, true],
      [2, false],
    ]);
    expect(output.finished[1].outputTokens).toBeLessThan(40);
    expect(engine.heldBlocks).toBe(0);
  });
});

describe("the named profiles", () => {
  it("run the same requests to their ends", () => {
    for (const profile of [VLLM, TRTLLM, SGLANG]) {
      const engine = engineWith(profile, { poolBlocks: 30 });
      const output = play(
        engine,
        ...Array.from({ length: 20 }, (_, i) => [i, request(i, [1, 2, 100 + i, 200 + i], 16, 1 + i)] as const),
      );
      expect(output.finished).toHaveLength(20);
      expect(output.finished.every(({ key, outputTokens }) => outputTokens === key + 1)).toBe(true);
      expect(engine.stats.cachedTokens).toBeGreaterThan(0);
      expect(engine.heldBlocks).toBe(0);
    }
  });
});
