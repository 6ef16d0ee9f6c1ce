import { describe, expect, test } from "vitest";
import { WorkerDirectory } from "../worker-directory.ts";
import { DEFAULT_CIRCUIT } from "./circuit-breaker.ts";
import { HealthMonitor } from "./health-monitor.ts";
import type { ProbeResult } from "./worker-probe.ts";

/** A monitor of one worker whose answers to probes the test gives. */
function monitored(circuit = DEFAULT_CIRCUIT): {
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
    fleet: { setCircuit: (worker, state) => told.push(`${worker} ${state}`) },
    probe: () => Promise.resolve(answer.result),
    intervalMs: 3_600_000,
    circuit,
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
    expect(told).toEqual(["a open"]);
    answer.result = { isHealthy: true };
    await monitor.probeAll();
    expect(told).toEqual(["a open", "a closed"]);
    await monitor.close();
  });

  test("takes failed attempts as a sign, but not clients that leave, requests that are bad or a way to all that is down", async () => {
    const { monitor, told } = monitored();
    for (let i = 0; i < 9; i++) {
      monitor.attemptEnded("a", { outcome: "cancelled", fault: "client-left" }, 0);
      monitor.attemptEnded("a", { outcome: "rejected", fault: "status" }, 0);
      monitor.attemptEnded("a", { outcome: "failed", fault: "network-down" }, 0);
    }
    expect(told).toEqual([]);
    for (let i = 0; i < 3; i++) monitor.attemptEnded("a", { outcome: "failed", fault: "reset" }, 0);
    expect(told).toEqual(["a open"]);
    await monitor.close();
  });

  test("forgets what it knew of a worker that has left", async () => {
    const { monitor, directory, told } = monitored();
    for (let i = 0; i < 2; i++) monitor.attemptEnded("a", { outcome: "failed", fault: "reset" }, 0);
    const worker = { name: "a", url: "http://127.0.0.1:1" };
    directory.left(0, worker);
    monitor.attemptEnded("a", { outcome: "failed", fault: "reset" }, 0);
    directory.joined(0, worker, 0);
    monitor.attemptEnded("a", { outcome: "failed", fault: "reset" }, 0);
    expect(told).toEqual([]);
    await monitor.close();
  });

  test("lets a worker prove itself after a rest, by a request that was sent since", async () => {
    const { monitor, told } = monitored({ ...DEFAULT_CIRCUIT, restMs: 0 });
    for (let i = 0; i < 3; i++) monitor.attemptEnded("a", { outcome: "failed", fault: "reset" }, 0);
    await monitor.probeAll();
    expect(told).toEqual(["a open", "a half-open"]);
    monitor.attemptEnded("a", { outcome: "timedOut", fault: "gap-timeout" }, 3_600_000);
    expect(told).toHaveLength(2);
    monitor.attemptEnded("a", { outcome: "completed" }, 0);
    expect(told.at(-1)).toBe("a closed");
    await monitor.close();
  });

  test("ejects whoever lets requests run into deadlines, as long as enough of the fleet is left", async () => {
    const { monitor, directory, told } = monitored();
    const timeOut = (worker: string): void => {
      for (let i = 0; i < 2; i++) monitor.attemptEnded(worker, { outcome: "timedOut", fault: "first-byte-timeout" }, 1);
    };
    timeOut("a");
    expect(told).toEqual([]);
    for (const [replica, name] of ["b", "c"].entries()) {
      directory.joined(1 + replica, { name, url: `http://127.0.0.1:${2 + replica}` }, 0);
    }
    timeOut("b");
    expect(told).toEqual(["b open"]);
    timeOut("c");
    expect(told).toEqual(["b open"]);
    await monitor.close();
  });

  test.each(["status", "stream-error", "gap-timeout"] as const)(
    "keeps enough of the fleet when requests fail everywhere by %s, which need not be the workers' fault",
    async (fault) => {
      const { monitor, directory, told } = monitored();
      for (const [replica, name] of ["b", "c", "d"].entries()) {
        directory.joined(1 + replica, { name, url: `http://127.0.0.1:${2 + replica}` }, 0);
      }
      const outcome = fault === "gap-timeout" ? "timedOut" : "failed";
      for (let i = 0; i < 40; i++) {
        for (const worker of ["a", "b", "c", "d"]) monitor.attemptEnded(worker, { outcome, fault }, 1);
      }
      expect(told).toEqual(["a open", "b open"]);
      await monitor.close();
    },
  );

  test.each(["reset", "stream-cut"] as const)(
    "keeps enough of the fleet when one request after another breaks every worker it is tried on by %s",
    async (fault) => {
      const { monitor, directory, told } = monitored();
      for (const [replica, name] of ["b", "c"].entries()) {
        directory.joined(1 + replica, { name, url: `http://127.0.0.1:${2 + replica}` }, 0);
      }
      const orders = [
        ["a", "b", "c"],
        ["b", "c", "a"],
        ["c", "a", "b"],
      ];
      for (const order of orders) {
        for (const [i, worker] of order.entries()) {
          monitor.attemptEnded(worker, { outcome: "failed", fault }, 1, i > 0);
        }
      }
      expect(told).toHaveLength(1);
      for (let i = 0; i < 3; i++) monitor.attemptEnded("a", { outcome: "failed", fault: "connect" }, 1, true);
      for (let i = 0; i < 3; i++) monitor.attemptEnded("b", { outcome: "failed", fault: "connect" }, 1, true);
      for (let i = 0; i < 3; i++) monitor.attemptEnded("c", { outcome: "failed", fault: "connect" }, 1, true);
      expect(told.toSorted()).toEqual(["a open", "b open", "c open"]);
      await monitor.close();
    },
  );

  test.each(["connect", "reset", "stream-cut"] as const)(
    "shuts out whoever requests are lost with by %s, though nobody be left",
    async (fault) => {
      const { monitor, directory, told } = monitored();
      directory.joined(1, { name: "b", url: "http://127.0.0.1:2" }, 0);
      for (const worker of ["a", "b"]) {
        for (let i = 0; i < 3; i++) monitor.attemptEnded(worker, { outcome: "failed", fault, mayRetry: false }, 1);
      }
      expect(told).toEqual(["a open", "b open"]);
      await monitor.close();
    },
  );
});
