import { describe, expect, test } from "vitest";
import { describeArm, describeDifference, differingSettings, settingsOfArm } from "./settings.ts";

const CONFIG = {
  name: "sweep",
  seed: 7,
  runs: 3,
  fleet: { model: "m", workers: 2 },
  load: { concurrency: [40, 80], maxRateRps: 5 },
  arms: [
    { name: "rr", policy: "round-robin", parameters: {}, admission: { mode: "engine" } },
    { name: "kv", policy: "kv-cost", parameters: { temperature: 0, form: "dynamo" }, admission: { mode: "engine" } },
  ],
};

describe("what an arm was run with", () => {
  test("arms of one experiment differ in what their entries say", () => {
    const [rr, kv] = ["rr", "kv"].map((arm) => settingsOfArm(CONFIG, arm));
    expect(differingSettings(rr, kv)).toEqual(["policy"]);
    expect(differingSettings(rr, rr)).toEqual([]);
  });

  test("names, seeds, levels, workers and the order of keys are no difference, a fleet or a rate limit is", () => {
    const same = {
      ...CONFIG,
      name: "other",
      seed: 8,
      runs: 1,
      fleet: { workers: 4, model: "m" },
      load: { maxRateRps: 5, concurrency: [10] },
    };
    const rr = settingsOfArm(CONFIG, "rr");
    expect(differingSettings(rr, settingsOfArm(same, "rr"))).toEqual([]);
    const perWorker = { ...CONFIG, load: { concurrencyPerWorker: [20], maxRateRps: 5 } };
    expect(differingSettings(rr, settingsOfArm(perWorker, "rr"))).toEqual([]);
    const larger = { ...CONFIG, fleet: { model: "n", workers: 2 }, load: { concurrency: [40] } };
    expect(differingSettings(rr, settingsOfArm(larger, "rr"))).toEqual(["fleet", "load"]);
    expect(differingSettings(rr, settingsOfArm({ ...CONFIG, load: { rateRps: [1], maxRateRps: 5 } }, "rr"))).toEqual([
      "load",
    ]);
  });

  test("in words", () => {
    expect(describeArm(CONFIG, "kv")).toBe('kv-cost, temperature 0, form "dynamo", admission engine');
    expect(describeArm(CONFIG, "nobody")).toBeUndefined();
    const long = new Map([["fleet", "x".repeat(500)]]);
    const said = describeDifference("fleet", new Map(), long);
    expect(said).toMatch(/^fleet: not set → x+…$/);
    expect(said.length).toBeLessThan(150);
  });
});
