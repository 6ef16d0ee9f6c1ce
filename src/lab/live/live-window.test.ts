import { describe, expect, test } from "vitest";
import { NS_PER_SECOND } from "../../core/clock.ts";
import { readExperiment } from "../experiment/read.ts";
import type { Experiment } from "../experiment/types.ts";
import { LiveWindow } from "./live-window.ts";

function experimentWith(changes: object): Experiment {
  const { experiment, problems } = readExperiment({
    name: "window",
    fleet: { model: "llama-3.1-8b", gpu: "h100", workers: 2, engine: { profile: "vllm" }, blockTokens: 64 },
    workload: { conversations: {} },
    load: { concurrency: [10] },
    arms: [{ name: "a", policy: "round-robin" }],
    warmUpSeconds: 5,
    windowSeconds: 10,
    drainSeconds: 3,
    ...changes,
  });
  if (experiment === undefined) throw new Error(problems.join("\n"));
  return experiment;
}

const at = (seconds: number): number => seconds * NS_PER_SECOND;

describe("the window of a live cell", () => {
  test("begins when the time is over and a hundred requests have completed, unless told otherwise", () => {
    const window = new LiveWindow(experimentWith({}), undefined);
    for (let request = 0; request < 99; request++) window.completed();
    expect(window.begin(at(6))).toBe(false);
    window.completed();
    expect(window.begin(at(4))).toBe(false);
    expect(window.begin(at(7))).toBe(true);
    expect(window.begin(at(8))).toBe(false);
    expect(window.measured).toEqual({ startNs: at(7), endNs: at(17), drainNs: at(3) });
    window.completed();
    expect(window.warmUp).toEqual({ seconds: 7, requests: 100 });
  });

  test("waits for time alone where the file says so, to the nanosecond", () => {
    const window = new LiveWindow(experimentWith({ warmUpRequests: 0 }), undefined);
    expect(window.begin(at(5.02))).toBe(true);
    expect(window.measured.startNs).toBe(at(5));
  });

  test("begins with its schedule, and ends with it", () => {
    const window = new LiveWindow({ ...experimentWith({ warmUpSeconds: 0 }), windowSeconds: undefined }, at(60));
    expect(window.begin(at(0))).toBe(true);
    expect(window.measured.endNs).toBe(at(60) + 1000);
  });

  test("ends with its schedule where that has an end that only its coming shows", () => {
    const experiment = { ...experimentWith({ warmUpSeconds: 0 }), windowSeconds: undefined };
    const window = new LiveWindow(experiment, Infinity);
    expect(window.begin(at(0))).toBe(true);
    expect(window.hasPlannedEnd).toBe(false);
    expect(window.measured.endNs).toBe(Infinity);
    window.end(at(60));
    expect(window.measured.endNs).toBe(at(60) + 1000);
  });

  test("begins and ends at whole microseconds, as it is written", () => {
    const window = new LiveWindow(experimentWith({}), undefined);
    for (let request = 0; request < 100; request++) window.completed();
    expect(window.begin(at(7) + 1)).toBe(true);
    expect(window.measured).toMatchObject({ startNs: at(7) + 1000, endNs: at(17) + 1000 });
  });

  test("waits longer where the same load must have run before", () => {
    const window = new LiveWindow(
      experimentWith({ warmUpRequests: 0, cacheState: "carried-over", carryOverSeconds: 20 }),
      undefined,
    );
    expect(window.begin(at(24))).toBe(false);
    expect(window.begin(at(25))).toBe(true);
  });

  test("does not wait for ever for a fleet that answers nothing", () => {
    const window = new LiveWindow(experimentWith({}), undefined);
    expect(window.begin(at(124))).toBe(false);
    expect(window.begin(at(125))).toBe(true);
    expect(window.warmUp.requests).toBe(0);
  });
});
