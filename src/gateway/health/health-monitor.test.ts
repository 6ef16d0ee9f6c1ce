import { describe, expect, test } from "vitest";
import { WorkerDirectory } from "../worker-directory.ts";
import { HealthMonitor } from "./health-monitor.ts";
import type { ProbeResult } from "./worker-probe.ts";

/** A monitor of one worker whose answers to probes the test gives. */
function monitored(): {
  monitor: HealthMonitor;
  directory: WorkerDirectory;
  told: string[];
  answer: { result: ProbeResult };
} {
  const directory = new WorkerDirectory();
  const told: string[] = [];
  const answer: { result: ProbeResult } = { result: { isHealthy: true, models: ["m"] } };
  const monitor = new HealthMonitor({
    directory,
    fleet: { setHealthy: (worker, isHealthy) => told.push(`${worker} ${isHealthy}`) },
    probe: () => Promise.resolve(answer.result),
    intervalMs: 3_600_000,
  });
  directory.joined(0, { name: "a", url: "http://127.0.0.1:1" }, 0);
  return { monitor, directory, told, answer };
}

describe("the monitor of workers", () => {
  test("learns what workers serve", async () => {
    const { monitor, directory } = monitored();
    await monitor.start();
    expect(directory.models()).toEqual(["m"]);
    await monitor.close();
  });

  test("tells the fleet when a worker stops answering, and when it answers again", async () => {
    const { monitor, told, answer } = monitored();
    answer.result = { isHealthy: false };
    await monitor.probeAll();
    expect(told).toEqual([]);
    await monitor.probeAll();
    expect(told).toEqual(["a false"]);
    answer.result = { isHealthy: true };
    await monitor.probeAll();
    expect(told).toEqual(["a false", "a true"]);
    await monitor.close();
  });

  test("takes failed attempts as a sign, but not clients that leave or requests that are bad", async () => {
    const { monitor, told } = monitored();
    for (let i = 0; i < 9; i++) {
      monitor.attemptEnded("a", { outcome: "cancelled", fault: "client-left" });
      monitor.attemptEnded("a", { outcome: "rejected", fault: "status" });
    }
    expect(told).toEqual([]);
    for (let i = 0; i < 3; i++) monitor.attemptEnded("a", { outcome: "failed", fault: "reset" });
    expect(told).toEqual(["a false"]);
    await monitor.close();
  });

  test("forgets what it knew of a worker that has left", async () => {
    const { monitor, directory, told } = monitored();
    for (let i = 0; i < 2; i++) monitor.attemptEnded("a", { outcome: "failed", fault: "reset" });
    const worker = { name: "a", url: "http://127.0.0.1:1" };
    directory.left(0, worker);
    monitor.attemptEnded("a", { outcome: "failed", fault: "reset" });
    directory.joined(0, worker, 0);
    monitor.attemptEnded("a", { outcome: "failed", fault: "reset" });
    expect(told).toEqual([]);
    await monitor.close();
  });
});
