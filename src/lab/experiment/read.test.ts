import { describe, expect, test } from "vitest";
import { readExperiment } from "./read.ts";
import type { Experiment } from "./types.ts";

const FLEET = {
  model: "qwen3-8b",
  gpu: "h100",
  workers: 2,
  engine: { profile: "vllm" },
  blockTokens: 64,
};
const SMALL = {
  name: "small",
  fleet: FLEET,
  workload: { conversations: { preset: "short-chat" } },
  load: { concurrency: [4, 8] },
  arms: [{ name: "rr", policy: "round-robin" }],
  windowSeconds: 10,
};

function problemsOf(changes: object): readonly string[] {
  return readExperiment({ ...SMALL, ...changes }).problems;
}

describe("an experiment file", () => {
  test("gets every default filled in", () => {
    const { experiment } = readExperiment(SMALL);
    expect(experiment).toMatchObject({
      fleet: {
        workers: [2],
        tensorParallel: 1,
        weights: "bf16",
        memoryFraction: 0.9,
        engine: { chunkedPrefill: true },
      },
      arms: [{ parameters: {}, admission: { mode: "engine" } }],
      warmUpSeconds: 0,
      runs: 1,
      cacheState: "cold",
      signals: { frontendMs: 4, kvEvents: { delayMs: 5, batchMs: 0, lossShare: 0 } },
    } satisfies Record<string, unknown>);
  });

  test("may be read again once its defaults are filled in", () => {
    const { experiment } = readExperiment(SMALL);
    expect(readExperiment(JSON.parse(JSON.stringify(experiment))).experiment).toEqual(experiment as Experiment);
  });

  test.each([
    ["a key that is not known", { fleet: { ...FLEET, gpus: 8 } }, "fleet.gpus is not a known field"],
    ["a missing field", { name: undefined }, "name is missing"],
    [
      "an unknown policy",
      { arms: [{ name: "a", policy: "best" }] },
      /^arms\[0\]\.policy must be "round-robin" or .*, got "best"$/,
    ],
    [
      "an unknown parameter",
      { arms: [{ name: "a", policy: "kv-cost", parameters: { weight: 1 } }] },
      /^arms\[0\]: policy kv-cost: parameter weight is not a parameter/,
    ],
    ["no level", { load: { concurrency: [] } }, "load.concurrency must be a list with at least one entry"],
    ["a level twice", { load: { concurrency: [60, 80, 60] } }, /^load\.concurrency must not have 60 twice/],
    ["a rate twice", { load: { rateRps: [2, 2] } }, /^load\.rateRps must not have 2 twice/],
    [
      "a number of workers twice",
      { fleet: { ...FLEET, workers: [2, 2] } },
      "fleet.workers must be a whole number, 1 to 4096, or a list of different ones",
    ],
    [
      "workers without end",
      { fleet: { ...FLEET, workers: 1e15 } },
      /^fleet\.workers must be a whole number, 1 to 4096, or a list of different ones, got 1000000000000000$/,
    ],
    ["levels without end", { load: { concurrency: [1e15] } }, "load.concurrency[0] must be 1000000 or less"],
    ["snapshots without end", { snapshots: 1e15 }, "snapshots must be 1000 or less"],
    [
      "prompts without end",
      { workload: { conversations: { starterTokens: [1, 1e15] } } },
      /^workload\.conversations\.starterTokens/,
    ],
    [
      "answers that hardly differ",
      { workload: { conversations: { outputVariation: 1e-300 } } },
      "workload.conversations.outputVariation must be 0, or 0.001 or more, got 1e-300",
    ],
    [
      "groups whose lengths are the wrong way round",
      { workload: { prefixGroups: { groups: 1, prefixTokens: [9, 1], suffixTokens: [1, 2], outputTokens: [1, 2] } } },
      /^workload\.prefixGroups: prefixTokens must be two whole numbers, the lower first/,
    ],
    [
      "jitter of rows without times",
      { workload: { trace: { files: ["t"], jitter: true } } },
      /^workload\.trace\.jitter needs load\.speed/,
    ],
    ["not a number", { windowSeconds: Number.NaN }, /^windowSeconds must be a number, got/],
    ["a number without end", { runs: Infinity }, /^runs must be /],
    ["two kinds of load", { load: { concurrency: [1], rateRps: [1] } }, /^load must have exactly one of/],
    ["no workload", { workload: {} }, /^workload must have exactly one of .*; it has none$/],
    [
      "a range the wrong way round",
      { workload: { conversations: { turns: [5, 3] } } },
      /^workload\.conversations: turns/,
    ],
    ["a window without length", { windowSeconds: 1e-9 }, "windowSeconds must be 0.001 or more, got 1e-9"],
    ["a window without end", { windowSeconds: 1e300 }, "windowSeconds must be 86400 or less, got 1e+300"],
    ["runs without end", { runs: 1e9 }, "runs must be 10000 or less, got 1000000000"],
    ["a schedule without a trace", { load: { speed: [1] } }, "load.speed needs workload.trace"],
    ["no end", { windowSeconds: undefined }, /windowSeconds, because the load has no end/],
    [
      "two arms of one name",
      { arms: [SMALL.arms[0], SMALL.arms[0]] },
      'arms[1].name must be unique among the arms, got "rr"',
    ],
    [
      "watermarks that nobody looks at",
      { arms: [{ ...SMALL.arms[0], admission: { watermarks: { prefillTokens: 1 } } }] },
      /^arms\[0\]\.admission\.watermarks has no effect with mode engine/,
    ],
  ])("with %s is refused in one line that names the field", (_, changes, problem) => {
    const problems = problemsOf(changes);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(problem);
    expect(problems[0]).not.toContain("\n");
  });

  test("is told all of its problems at once", () => {
    expect(problemsOf({ runs: 0, fleet: { ...FLEET, gpu: "h10" }, extra: 1 })).toHaveLength(3);
  });
});
