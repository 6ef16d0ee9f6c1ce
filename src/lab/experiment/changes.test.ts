import { describe, expect, test } from "vitest";
import { cellsOf } from "./cells.ts";
import { changed } from "./changes.ts";
import { readExperiment } from "./read.ts";
import type { Experiment } from "./types.ts";

const CONTENT = {
  name: "live",
  fleet: { model: "llama-3.1-8b", gpu: "h100", workers: [3, 6], engine: { profile: "vllm" }, blockTokens: 64 },
  workload: { conversations: {} },
  load: { concurrencyPerWorker: [10, 20] },
  arms: [{ name: "a", policy: "round-robin" }],
  windowSeconds: 10,
};

function experimentOf(content: object): Experiment {
  const { experiment, problems } = readExperiment(content);
  if (experiment === undefined) throw new Error(problems.join("\n"));
  return experiment;
}

describe("an experiment", () => {
  test("has the same load per worker on every fleet", () => {
    const levels = cellsOf(experimentOf(CONTENT)).map(({ level }) => [level.workers, level.concurrency]);
    expect(levels).toEqual([
      [3, 30],
      [3, 60],
      [6, 60],
      [6, 120],
    ]);
  });

  test("takes other times and another start from the command line", () => {
    const experiment = experimentOf(CONTENT);
    expect(changed(experiment, {})).toEqual(experiment);
    expect(changed(experiment, { windowSeconds: 5, cacheState: "primed", order: "by-arm" })).toMatchObject({
      windowSeconds: 5,
      cacheState: "primed",
      warmUpSeconds: 0,
      live: { order: "by-arm" },
    });
    expect(() => changed(experiment, { windowSeconds: 0 })).toThrow("longer than 0 s");
  });

  test("names what is wrong with its live part", () => {
    const problemsOf = (live: object): readonly string[] => readExperiment({ ...CONTENT, live }).problems;
    expect(problemsOf({ hooks: { beforeArm: "x" } })).toEqual(["live.hooks.beforeArm is not a known field"]);
    expect(problemsOf({ workers: ["gpu1:8000"] })).toEqual([
      'live.workers[0] must be URL or NAME=URL, got "gpu1:8000"',
    ]);
    expect(problemsOf({ workers: ["a=http://gpu1:8000"], hooks: { before_arm: "true" } })).toEqual([]);
  });
});
