import { describe, expect, test } from "vitest";
import { LiveFeed } from "./feed.ts";
import type { FleetView, WorkerView } from "./protocol.ts";
import type { FleetSource, LoadSource } from "./sources.ts";
import { fakeLoad, IDENTITY } from "./test-doubles.ts";

const WORKER: WorkerView = {
  name: "worker-1",
  url: "http://127.0.0.1:8001",
  state: "ready",
  sinceMs: 0,
  running: 3,
  queued: 0,
  batchSlots: 64,
  kvShare: 0.25,
  hitShare: null,
  requestsPerSecond: null,
  indexState: "live",
};

const FLEET: FleetView = {
  policy: "round-robin",
  parameters: {},
  workers: [WORKER],
  decisions: [],
  queued: 0,
  isAnswering: true,
};

/** A feed whose clock and fleet the test turns by hand. */
function feedOf(fleet?: Partial<FleetSource>, load: LoadSource = fakeLoad()) {
  const clock = { nowMs: 1_000_000 };
  const source: FleetSource = { view: () => FLEET, policies: [], setPolicy: () => Promise.resolve(), ...fleet };
  const feed = new LiveFeed({
    identity: IDENTITY,
    load,
    ...(fleet !== undefined && { fleet: source }),
    slo: {},
    baselines: { sources: [], arms: [] },
    now: () => clock.nowMs,
  });
  return { feed, clock };
}

describe("the feed", () => {
  test("greets a page that comes late with the last minutes, a row a second", () => {
    const { feed, clock } = feedOf();
    for (let tick = 0; tick < 10; tick++) {
      clock.nowMs += 400;
      feed.tick();
    }
    const { history, snapshot } = feed.hello;
    expect(snapshot.atMs).toBe(clock.nowMs);
    expect(history.map(([atMs]) => atMs)).toEqual([1_000_000, 1_001_200, 1_002_400, 1_003_600]);
  });

  test("says what cannot be done for an endpoint without a gateway, and refuses to do it", async () => {
    const { feed } = feedOf();
    expect(feed.hello.capabilities).toEqual({ fleet: false, resetCaches: false, workerProcesses: false });
    expect(feed.tick().fleet).toBeNull();
    await expect(feed.run({ kind: "set-policy", policy: "kv-cost" })).rejects.toThrow("no gateway");
    await expect(feed.run({ kind: "reset-caches" })).rejects.toThrow("cannot be reset");
    await expect(feed.run({ kind: "end-worker", worker: "a" })).rejects.toThrow("not started from here");
  });

  test("hands commands to the load", async () => {
    const load = fakeLoad();
    const { feed } = feedOf(undefined, load);
    await feed.run({ kind: "set-concurrency", concurrency: 42 });
    await feed.run({ kind: "stop" });
    expect(load.calls).toEqual(["concurrency 42", "stop"]);
  });

  test("marks a policy that was changed, and not one that was refused", async () => {
    let view = FLEET;
    const { feed } = feedOf({
      view: () => view,
      setPolicy: (policy) => {
        if (policy !== "kv-cost") return Promise.reject(new Error("unknown policy"));
        view = { ...FLEET, policy };
        return Promise.resolve();
      },
    });
    await feed.run({ kind: "set-policy", policy: "kv-cost" });
    await expect(feed.run({ kind: "set-policy", policy: "none" })).rejects.toThrow("unknown policy");
    expect(feed.tick().marks.map(({ kind, label }) => [kind, label])).toEqual([["policy", "kv-cost"]]);
  });

  test("marks a policy and a knob that somebody else has changed, once each", () => {
    let view: FleetView | undefined;
    const { feed } = feedOf({ view: () => view });
    const labels = (): string[] => feed.tick().marks.map(({ label }) => label);
    view = FLEET;
    expect(labels()).toEqual([]);
    view = { ...FLEET, policy: "kv-cost", parameters: { overlap_score_weight: 1 } };
    expect(labels()).toEqual(["kv-cost"]);
    view = { ...view, parameters: { overlap_score_weight: 2 } };
    expect([labels(), labels()]).toEqual([
      ["kv-cost", "kv-cost"],
      ["kv-cost", "kv-cost"],
    ]);
  });

  test("marks caches that were reset, also where one worker could not do it", async () => {
    const problems = ["worker-2: no such route"];
    const { feed } = feedOf({ resetCaches: () => Promise.resolve({ workers: 1, problems }) });
    await expect(feed.run({ kind: "reset-caches" })).rejects.toThrow("not reset: worker-2: no such route");
    expect(feed.tick().marks.map(({ label }) => label)).toEqual(["caches reset"]);
    const { feed: other } = feedOf({ resetCaches: () => Promise.resolve({ workers: 0, problems }) });
    await expect(other.run({ kind: "reset-caches" })).rejects.toThrow("not reset");
    const { feed: nobody } = feedOf({ resetCaches: () => Promise.resolve({ workers: 0, problems: [] }) });
    await expect(nobody.run({ kind: "reset-caches" })).rejects.toThrow("no worker is known");
    expect(other.tick().marks).toEqual([]);
  });

  test("shows a worker whose process ended as dead at once, whatever the gateway still says, and marks it", () => {
    const ended = new Map<string, number>();
    const processes = { ended, end: () => Promise.resolve(), start: () => Promise.resolve() };
    const { feed, clock } = feedOf({ processes });
    ended.set("worker-1", 5);
    clock.nowMs += 400;
    const { fleet, marks } = feed.tick();
    expect(fleet?.workers[0]).toMatchObject({ state: "dead", running: null, kvShare: null, sinceMs: clock.nowMs });
    expect(marks.map(({ label }) => label)).toEqual(["worker-1 lost"]);
    ended.clear();
    expect(feed.tick().marks.map(({ label }) => label)).toEqual(["worker-1 lost", "worker-1 back"]);
  });

  test("gives each worker the rates of the requests it served", () => {
    const rates = new Map([["worker-1", { requestsPerSecond: 1.5, hitShare: 0.9 }]]);
    const { feed } = feedOf({}, { ...fakeLoad(), workerRates: () => rates });
    expect(feed.tick().fleet?.workers[0]).toMatchObject({ requestsPerSecond: 1.5, hitShare: 0.9 });
  });
});
