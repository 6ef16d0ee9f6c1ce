import { describe, expect, test } from "vitest";
import type { AiperfSummary } from "../../wire/aiperf/summary-file.ts";
import { type AiperfRun, placeAiperfRuns, settingsOfArms } from "./aiperf-arms.ts";
import { levelOfRun, readRunPath, settingsOfRun } from "./aiperf-places.ts";

function summaryOf(inputConfig: Readonly<Record<string, unknown>>): AiperfSummary {
  return {
    schemaVersion: undefined,
    aiperfVersion: undefined,
    metrics: new Map(),
    inputConfig,
    wasCancelled: false,
    errors: [],
    startTime: undefined,
    endTime: undefined,
    gpus: [],
  };
}

describe("what folders say of a run of AIPerf", () => {
  test.each([
    [["off", "run_1"], { arm: ["off"], besideWorkers: [], run: 1, level: {} }],
    [
      ["on", "concurrency-40", "profile_run_0003"],
      { arm: ["on"], besideWorkers: [], run: 3, level: { concurrency: 40 } },
    ],
    [
      ["a100-n2", "kv", "rate=2.5", "trial2"],
      { arm: ["a100", "kv"], besideWorkers: ["a100"], run: 2, level: { workers: 2, rateRps: 2.5 } },
    ],
    [["artifacts", "workers-8", "mine"], { arm: ["mine"], besideWorkers: [], run: undefined, level: { workers: 8 } }],
  ])("%j", (folders, expected) => {
    expect(readRunPath(folders)).toEqual(expected);
  });

  test("what AIPerf was told counts before what folders are called", () => {
    const path = readRunPath(["concurrency-40"]);
    const level = (config: object): object => levelOfRun(summaryOf(config as never), ["x-n4"], path);
    expect(level({ loadgen: { concurrency: 60 } })).toEqual({ concurrency: 60, workers: 4 });
    expect(level({})).toEqual({ concurrency: 40, workers: 4 });
    expect(level({ loadgen: { request_rate: 3, concurrency: 60 } })).toEqual({ rateRps: 3, workers: 4 });
    expect(level({ input: { fixed_schedule: true } })).toEqual({ speed: 1, workers: 4 });
    expect(level({ input: { fixed_schedule: true, synthesis: { speedup_ratio: 0.8 } } })).toMatchObject({ speed: 0.8 });
  });

  test("addresses and levels are no settings, inputs are", () => {
    const of = (config: object): Map<string, string> => settingsOfRun(summaryOf(config as never), "on");
    const one = of({ endpoint: { url: "http://a", type: "chat" }, loadgen: { concurrency: 1, seed: 3 } });
    const two = of({ endpoint: { type: "chat", url: "http://b" }, loadgen: { seed: 3, concurrency: 2 } });
    expect([...one]).toEqual([...two]);
    expect(of({ input: { file: "/a/trace.jsonl" } }).get("input file")).toBe('"trace.jsonl"');
  });
});

describe("runs of AIPerf sorted into arms, levels and repetitions", () => {
  const runOf = (below: readonly string[], config: object = {}): AiperfRun => ({
    summary: summaryOf(config as never),
    below,
    folders: ["home", "study", ...below],
    arm: undefined,
  });

  test("two that claim the same place are numbered on", () => {
    const places = placeAiperfRuns([runOf(["off", "run_1"]), runOf(["off", "run_1"]), runOf(["on"])]);
    expect(places.map(({ arm, run }) => [arm, run])).toEqual([
      ["off", 1],
      ["off", 2],
      ["on", 1],
    ]);
  });

  test("an arm that is named in one word with its workers is told from others", () => {
    const armsOf = (...names: readonly string[]): string[] =>
      placeAiperfRuns(names.map((name) => runOf(name.split("/")))).map(({ arm, level }) => `${arm} ${level.workers}`);
    expect(armsOf("off-n2", "on-n2", "off-n4", "on-n4")).toEqual(["off 2", "on 2", "off 4", "on 4"]);
    expect(armsOf("a100-n2/off", "a100-n2/on", "a100-n4/off")).toEqual(["off 2", "on 2", "off 4"]);
    expect(armsOf("a100-n2/off", "h100-n2/off")).toEqual(["a100/off 2", "h100/off 2"]);
    expect(armsOf("on-n2", "on-n4")).toEqual(["on 2", "on 4"]);
  });

  test("a run without a folder of its own is named by the nearest that names anything", () => {
    expect(placeAiperfRuns([{ ...runOf([]), folders: ["study", "kv", "run_2"] }])).toMatchObject([
      { arm: "kv", run: 2 },
    ]);
  });

  test("runs of an arm that were not configured alike are said", () => {
    const runs = [runOf(["on", "run_1"], { loadgen: { seed: 1 } }), runOf(["on", "run_2"], { loadgen: { seed: 2 } })];
    expect(settingsOfArms(runs, placeAiperfRuns(runs)).problems).toEqual(["on: its runs were not configured alike"]);
    const levels = runs.map((run, i) => ({ ...run, below: ["on", `concurrency-${i}`] }));
    expect(settingsOfArms(levels, placeAiperfRuns(levels)).problems).toEqual([]);
  });
});
