import { describe, expect, test } from "vitest";
import { WorkerHealth } from "./worker-health.ts";

const THRESHOLDS = { failedProbes: 2, failedAttempts: 3, restMs: 100, longestRestMs: 250 };

function failing(health: WorkerHealth, times: number, nowMs: number): void {
  for (let i = 0; i < times; i++) health.attempted(false, nowMs);
}

describe("a worker's health", () => {
  test("is lost after two failed probes in a row and regained by one that succeeds", () => {
    const health = new WorkerHealth(THRESHOLDS);
    for (const succeeded of [false, true, false]) health.probed(succeeded, 0);
    expect(health.isHealthy).toBe(true);
    health.probed(false, 0);
    expect(health.isHealthy).toBe(false);
    health.probed(true, 0);
    expect(health.isHealthy).toBe(true);
  });

  test("is lost after three failed attempts in a row", () => {
    const health = new WorkerHealth(THRESHOLDS);
    failing(health, 2, 0);
    health.attempted(true, 0);
    failing(health, 2, 0);
    expect(health.isHealthy).toBe(true);
    failing(health, 1, 0);
    expect(health.isHealthy).toBe(false);
  });

  test("after failed attempts needs a rest besides a probe, longer each time up to a limit", () => {
    const health = new WorkerHealth(THRESHOLDS);
    let nowMs = 0;
    for (const restMs of [100, 200, 250, 250]) {
      failing(health, 3, nowMs);
      health.probed(true, nowMs + restMs - 1);
      expect(health.isHealthy).toBe(false);
      health.probed(true, nowMs + restMs);
      expect(health.isHealthy).toBe(true);
      nowMs += 1000;
    }
  });

  test("is lost again by a single failure after the rest, unless a request succeeded meanwhile", () => {
    const health = new WorkerHealth(THRESHOLDS);
    failing(health, 3, 0);
    health.probed(true, 100);
    failing(health, 1, 100);
    expect(health.isHealthy).toBe(false);
    health.probed(true, 1000);
    health.attempted(true, 1000);
    failing(health, 1, 1000);
    expect(health.isHealthy).toBe(true);
  });
});
