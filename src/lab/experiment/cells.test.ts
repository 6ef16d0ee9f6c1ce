import { describe, expect, test } from "vitest";
import { cellsOf, narrowed } from "./cells.ts";
import { fleetMemory, requireFit } from "./memory.ts";
import { readExperiment } from "./read.ts";
import { runSeeds } from "./seeds.ts";
import { cellWindow } from "./target.ts";
import type { Experiment } from "./types.ts";
import { cellWorkload, meanSequenceTokens } from "./workload.ts";

function experimentOf(changes: object = {}): Experiment {
  const { experiment, problems } = readExperiment({
    name: "cells",
    fleet: {
      model: "llama-3.1-70b",
      gpu: "h100",
      tensorParallel: 2,
      workers: [2, 4],
      engine: { profile: "trtllm" },
      weights: "fp8",
      kv: "fp8",
      blockTokens: 32,
    },
    workload: { conversations: {} },
    load: { concurrency: [10, 20] },
    arms: [
      { name: "rr", policy: "round-robin" },
      { name: "wide", policy: "kv-cost", fleet: { tensorParallel: 4, workers: 1 } },
    ],
    warmUpSeconds: 30,
    windowSeconds: 60,
    runs: 2,
    ...changes,
  });
  if (experiment === undefined) throw new Error(problems.join("\n"));
  return experiment;
}

describe("the cells of an experiment", () => {
  test("are arms by workers by levels by runs, in the order of the file", () => {
    expect(cellsOf(experimentOf()).map(({ id }) => id)).toEqual([
      "rr/concurrency-10-workers-2/run-1",
      "rr/concurrency-10-workers-2/run-2",
      "rr/concurrency-20-workers-2/run-1",
      "rr/concurrency-20-workers-2/run-2",
      "rr/concurrency-10-workers-4/run-1",
      "rr/concurrency-10-workers-4/run-2",
      "rr/concurrency-20-workers-4/run-1",
      "rr/concurrency-20-workers-4/run-2",
      "wide/concurrency-10-workers-1/run-1",
      "wide/concurrency-10-workers-1/run-2",
      "wide/concurrency-20-workers-1/run-1",
      "wide/concurrency-20-workers-1/run-2",
    ]);
  });

  test("have the fleet of their arm", () => {
    const { fleet } = cellsOf(experimentOf()).at(-1) ?? {};
    expect(fleet).toMatchObject({ tensorParallel: 4, workers: [1], model: "llama-3.1-70b" });
  });

  test("can be narrowed to some arms, levels and runs", () => {
    const few = narrowed(experimentOf(), { arms: ["rr"], levels: [20], workers: [4], runs: 1 });
    expect(cellsOf(few).map(({ id }) => id)).toEqual(["rr/concurrency-20-workers-4/run-1"]);
    expect(() => narrowed(experimentOf(), { levels: [15] })).toThrow(
      "level 15 is not in the experiment; it has 10, 20",
    );
    expect(() => narrowed(experimentOf(), { arms: ["kv"] })).toThrow(
      'arm "kv" is not in the experiment; it has rr, wide',
    );
  });

  test("are narrowed to numbers of workers that an arm has of its own too", () => {
    const idsOf = (workers: number[], arms?: string[]): string[] =>
      cellsOf(narrowed(experimentOf(), { workers, arms, levels: [10], runs: 1 })).map(({ id }) => id);
    expect(idsOf([4])).toEqual(["rr/concurrency-10-workers-4/run-1"]);
    expect(idsOf([1])).toEqual(["wide/concurrency-10-workers-1/run-1"]);
    expect(idsOf([1, 2])).toEqual(["rr/concurrency-10-workers-2/run-1", "wide/concurrency-10-workers-1/run-1"]);
    expect(() => idsOf([8])).toThrow("number of workers 8 is not in the experiment; it has 2, 4, 1");
    expect(() => idsOf([1], ["rr"])).toThrow("number of workers 1 is not in the experiment; it has 2, 4");
  });

  test("share the seeds of their run, whatever the arm and level", () => {
    const seeds = new Set(cellsOf(experimentOf()).map((cell) => JSON.stringify(cell.seeds)));
    expect(seeds.size).toBe(2);
  });

  test("get the same requests in every arm", () => {
    const experiment = experimentOf({ load: { concurrency: [3] } });
    const [first, second] = ["rr", "wide"].map((arm) => {
      const cell = cellsOf(narrowed(experiment, { arms: [arm] }))[0];
      const { source } = cellWorkload(experiment, cell, undefined);
      return [source.take(), source.take(), source.take()];
    });
    expect(second).toEqual(first);
  });
});

describe("seeds", () => {
  test("of one branch leave the other branches as they are", () => {
    const plain = runSeeds({ seed: 1, seeds: {} }, 1);
    const other = runSeeds({ seed: 1, seeds: { workload: 7 } }, 1);
    expect(other).toEqual({ ...plain, workload: other.workload });
    expect(other.workload).not.toBe(plain.workload);
  });

  test("differ between runs and between branches", () => {
    const all = [1, 2, 3].flatMap((run) => Object.values(runSeeds({ seed: 1, seeds: {} }, run)));
    expect(new Set(all).size).toBe(all.length);
  });
});

describe("the window of a cell", () => {
  test("begins after the warm-up, and after the load that ran before it", () => {
    expect(cellWindow(experimentOf(), undefined)).toEqual({ startNs: 30e9, endNs: 90e9, drainNs: 120e9 });
    const carried = experimentOf({ cacheState: "carried-over", carryOverSeconds: 100 });
    expect(cellWindow(carried, undefined)).toMatchObject({ startNs: 130e9, endNs: 190e9 });
  });

  test("of a schedule includes its last request", () => {
    const { windowSeconds: _, ...open } = experimentOf({ warmUpSeconds: 0 });
    expect(cellWindow(open, 5e9)).toMatchObject({ startNs: 0, endNs: 5e9 + 1000 });
  });
});

describe("the memory of a fleet", () => {
  test("is refused with the arithmetic and the next fraction to try where the model does not fit", () => {
    const { fleet } = experimentOf();
    const tight = { ...fleet, tensorParallel: 1, engine: { ...fleet.engine, profile: "vllm" as const } };
    expect(() => requireFit(fleetMemory(tight, 6000), tight)).toThrow(
      /^fleet\.memoryFraction: llama-3\.1-70b does not fit 1 x h100: 85\.5 GB x 0\.9 = 77\.0 GB usable; .*; try memoryFraction 0\.95$/,
    );
  });

  test("counts sequences of the workload's own length", () => {
    const { workload, fleet, seed } = experimentOf();
    const tokens = meanSequenceTokens(workload, undefined, seed);
    expect(tokens).toBeGreaterThan(5500);
    expect(tokens).toBeLessThan(7500);
    expect(fleetMemory(fleet, tokens)).toMatchObject({ tokensPerSequence: tokens, poolRule: "of-free" });
  });
});
