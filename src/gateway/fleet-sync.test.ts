import { beforeEach, describe, expect, test } from "vitest";
import { NS_PER_SECOND } from "../core/clock.ts";
import type { Effect } from "../core/effects.ts";
import { sequenceHashes } from "../core/hash.ts";
import type { FeedCapabilities, KvEvent } from "../core/kv-index/types.ts";
import { createPolicy } from "../core/policy/registry.ts";
import { Router } from "../core/router.ts";
import type { DiscoveredWorker } from "../planes/discovery/types.ts";
import type { EventListener, EventPlane } from "../planes/event/types.ts";
import type { LoadListener } from "../planes/load/types.ts";
import { FleetSync } from "./fleet-sync.ts";

const SEQUENCE = sequenceHashes(
  Uint32Array.from({ length: 64 }, (_, i) => i),
  16,
);

/** A plane that the test speaks through, and that notes what it is asked. */
class PlayedPlane implements EventPlane {
  readonly counts = { events: 0, undecodable: 0, ignored: 0, reconnects: 0 };
  readonly asked: string[] = [];
  readonly listeners = new Map<string, EventListener>();
  readonly capabilities: FeedCapabilities;

  constructor(capabilities: FeedCapabilities) {
    this.capabilities = capabilities;
  }

  subscribe(replica: string, listener: EventListener): ReturnType<EventPlane["subscribe"]> {
    this.listeners.set(replica, listener);
    this.asked.push(`subscribe ${replica}`);
    return {
      replay: (from, to) => this.asked.push(`replay ${replica} ${from} to ${to}`),
      resync: () => this.asked.push(`resync ${replica}`),
      catchUp: () => this.asked.push(`catch up ${replica}`),
      close: () => {
        this.asked.push(`close ${replica}`);
        return Promise.resolve();
      },
    };
  }

  say(replica = "a"): EventListener {
    const listener = this.listeners.get(replica);
    if (listener === undefined) throw new Error(`nobody listens to ${replica}`);
    return listener;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

const WORKER: DiscoveredWorker = { name: "a", url: "http://a" };

const stored = (eventId: number): KvEvent => ({
  kind: "stored",
  parent: eventId === 0 ? null : SEQUENCE.slice(2 * eventId - 2, 2 * eventId),
  engine: SEQUENCE.slice(2 * eventId, 2 * eventId + 2),
  local: null,
  incarnation: "1",
  eventId,
  tier: "device",
});

describe("a fleet kept in step with discovery", () => {
  let nowNs: number;
  let router: Router;
  let effects: Effect[];
  let heard: string[];

  beforeEach(() => {
    nowNs = 0;
    router = new Router(createPolicy("kv-cost"), {
      blockTokens: 16,
      maxReplicas: 2,
      maxBlocks: 1024,
      admission: { mode: "queue", watermarks: { batchSlotsFraction: 1 } },
    });
    effects = [];
    heard = [];
  });

  function fleetOn(plane?: PlayedPlane): FleetSync {
    return new FleetSync({
      router,
      clock: { nowNs: () => nowNs },
      carryOut: (more) => effects.push(...more),
      events: () => plane,
      joined: (replica, { url }, dpRank) => heard.push(`joined ${replica} ${url} ${dpRank}`),
      left: (replica, { url }) => heard.push(`left ${replica} ${url}`),
      problem: (message) => heard.push(message),
    });
  }

  const phases = (fleet: FleetSync): string[] => fleet.workers.map(({ phase, indexState }) => `${phase} ${indexState}`);
  const cachedBlocks = (): number => router.index.match(SEQUENCE, 4).confirmed[0];
  const offered = (id: string): string[] =>
    router.offer({ id, promptTokens: 70, sequence: SEQUENCE, blocks: 4 }, nowNs).map(({ kind }) => kind);

  test("gives a worker nothing before its state has come", () => {
    const plane = new PlayedPlane({ replayDepth: 8, snapshot: true });
    const fleet = fleetOn(plane);
    fleet.appeared(WORKER);
    expect(plane.asked).toEqual(["subscribe a", "catch up a"]);
    expect(heard).toEqual(["joined 0 http://a 0"]);
    expect(offered("early")).toEqual(["shed"]);
    const run = { tier: "device", sequence: SEQUENCE, engine: null } as const;
    plane.say().snapshot({ incarnation: "1", lastEventId: 9, runs: [run] });
    plane.say().caughtUp();
    expect(phases(fleet)).toEqual(["ready live"]);
    expect(cachedBlocks()).toBe(4);
    expect(offered("late")).toEqual(["place"]);
  });

  test("waits until lost events are settled, where a worker can only repeat its last ones", () => {
    const plane = new PlayedPlane({ replayDepth: 8, snapshot: false });
    const fleet = fleetOn(plane);
    fleet.appeared(WORKER);
    plane.say().event(stored(2));
    plane.say().caughtUp();
    expect(plane.asked.at(-1)).toBe("replay a 0 to 1");
    expect(phases(fleet)).toEqual(["catching-up stale"]);
    plane.say().replayUnavailable();
    expect(phases(fleet)).toEqual(["ready partial"]);
  });

  test("serves a worker without its events when they do not come in time", () => {
    const plane = new PlayedPlane({ replayDepth: 8, snapshot: true });
    const fleet = fleetOn(plane);
    fleet.appeared(WORKER);
    nowNs = 4 * NS_PER_SECOND;
    fleet.tick();
    expect(phases(fleet)).toEqual(["catching-up empty"]);
    nowNs = 5 * NS_PER_SECOND;
    fleet.tick();
    expect(phases(fleet)).toEqual(["ready empty"]);
  });

  test("serves a worker that has no events at once, by guessing", () => {
    const fleet = fleetOn();
    fleet.appeared(WORKER);
    expect(phases(fleet)).toEqual(["ready approximate"]);
  });

  test("applies all changes that an engine sent under one id", () => {
    const plane = new PlayedPlane({ replayDepth: 8, snapshot: false });
    const fleet = fleetOn(plane);
    fleet.appeared(WORKER);
    const removed = { kind: "removed", engine: SEQUENCE.slice(4, 6), tier: "device" } as const;
    plane.say().event({ ...stored(0), more: [stored(1), stored(2), stored(3), removed] });
    plane.say().caughtUp();
    expect(phases(fleet)).toEqual(["ready live"]);
    expect(cachedBlocks()).toBe(2);
  });

  test("forgets the blocks of a worker that leaves, and what it says afterwards", async () => {
    const plane = new PlayedPlane({ replayDepth: 8, snapshot: true });
    const fleet = fleetOn(plane);
    fleet.appeared(WORKER);
    plane.say().snapshot({ incarnation: "1", lastEventId: -1, runs: [] });
    for (const id of [0, 1, 2]) plane.say().event(stored(id));
    plane.say().caughtUp();
    expect(cachedBlocks()).toBe(3);
    fleet.left("a");
    expect(cachedBlocks()).toBe(0);
    expect(fleet.workers).toEqual([]);
    plane.say().event(stored(3));
    plane.say().load({ running: 1, waiting: 0, kvUsage: 0 });
    expect(router.fleet.size).toBe(0);
    expect(heard.at(-1)).toBe("left 0 http://a");
    expect(plane.asked.at(-1)).toBe("close a");
    await fleet.close();
  });

  test("refuses what waits when the last worker leaves", () => {
    const fleet = fleetOn();
    fleet.appeared({ ...WORKER, batchSlots: 1 });
    expect([...offered("first"), ...offered("second")]).toEqual(["place", "hold"]);
    fleet.left("a");
    expect(effects).toMatchObject([{ kind: "shed", request: "second" }]);
  });

  test("carries out what the router asks of a replica's source", () => {
    const plane = new PlayedPlane({ replayDepth: 8, snapshot: true });
    const fleet = fleetOn(plane);
    fleet.appeared(WORKER);
    plane.say().snapshot({ incarnation: "1", lastEventId: -1, runs: [] });
    plane.say().event(stored(0));
    plane.say().event(stored(2));
    plane.say().replayUnavailable();
    expect(plane.asked.slice(2)).toEqual(["replay a 1 to 1", "resync a"]);
    nowNs = 3 * NS_PER_SECOND;
    for (const effect of router.tick(nowNs)) if (effect.kind === "resync") fleet.request(effect);
    expect(plane.asked.at(-1)).toBe("resync a");
    expect(effects).toEqual([]);
  });

  test("treats a worker that is described differently as another one, and one that is not as the same", () => {
    const fleet = fleetOn();
    fleet.appeared(WORKER);
    fleet.appeared({ ...WORKER });
    fleet.changed({ ...WORKER });
    expect(heard).toEqual(["joined 0 http://a 0"]);
    fleet.changed({ ...WORKER, url: "http://elsewhere" });
    expect(heard.slice(1)).toEqual(["left 0 http://a", "joined 0 http://elsewhere 0"]);
  });

  test("gives nothing to workers that are ill or being drained", () => {
    const fleet = fleetOn();
    fleet.appeared(WORKER);
    fleet.setCircuit("a", "open");
    expect([...phases(fleet), ...offered("x")]).toEqual(["unhealthy approximate", "shed"]);
    fleet.setCircuit("a", "closed");
    fleet.drain("a");
    expect([...phases(fleet), ...offered("y")]).toEqual(["draining approximate", "shed"]);
    fleet.undrain("a");
    expect([...phases(fleet), ...offered("z")]).toEqual(["ready approximate", "place"]);
  });

  test("gives a worker on trial one request, also of those that wait, unless there is nobody else", () => {
    const fleet = fleetOn();
    fleet.appeared({ ...WORKER, name: "a", batchSlots: 1 });
    fleet.appeared({ ...WORKER, name: "b", batchSlots: 9 });
    fleet.setCircuit("b", "open");
    expect(["1", "2", "3", "4"].flatMap((id) => offered(id))).toEqual(["place", "hold", "hold", "hold"]);
    fleet.setCircuit("b", "half-open");
    expect(fleet.workers.map(({ circuit, phase }) => [circuit, phase])).toEqual([
      ["closed", "ready"],
      ["half-open", "ready"],
    ]);
    expect([router.load.columns.inFlight[1], router.queued]).toEqual([1, 2]);
    fleet.setCircuit("a", "open");
    router.tick(1);
    expect([router.load.columns.inFlight[1], router.queued]).toEqual([3, 0]);
  });

  test("has a replica for each rank, and says where there is no room", () => {
    const fleet = fleetOn();
    fleet.appeared({ ...WORKER, dpRanks: 3 });
    expect(heard).toEqual([
      "joined 0 http://a 0",
      "joined 1 http://a 1",
      "the fleet is full at maxReplicas 2; raise it to add a#2",
    ]);
    fleet.left("a");
    expect(router.fleet.size).toBe(0);
  });

  test("serves a worker whose events cannot be heard, by guessing, and says so; another one is heard as ever", () => {
    const plane = new PlayedPlane({ replayDepth: 8, snapshot: true });
    const subscribe = plane.subscribe.bind(plane);
    plane.subscribe = (name, listener) => {
      if (name === "a") throw new Error("tcp://a:port is no address");
      return subscribe(name, listener);
    };
    const fleet = fleetOn(plane);
    fleet.appeared(WORKER);
    fleet.appeared({ ...WORKER, name: "b" });
    expect(phases(fleet)).toEqual(["ready approximate", "catching-up empty"]);
    expect(heard).toContain("worker a: its events cannot be heard, its cache is guessed; tcp://a:port is no address");
    expect(offered("one")).toEqual(["place"]);
    expect(router.index.match(SEQUENCE, 4).cached[0]).toBe(4);
    fleet.left("a");
    fleet.appeared(WORKER);
    expect(fleet.workers.map(({ worker }) => worker.name)).toEqual(["b", "a"]);
  });

  test("takes in who found no room, as soon as somebody leaves", () => {
    const fleet = fleetOn();
    for (const name of ["a", "b", "c"]) fleet.appeared({ ...WORKER, name });
    expect(fleet.workers.map(({ worker }) => worker.name)).toEqual(["a", "b"]);
    fleet.left("a");
    expect(fleet.workers.map(({ worker }) => worker.name)).toEqual(["b", "c"]);
    fleet.appeared({ ...WORKER, name: "d", dpRanks: 2 });
    fleet.changed({ ...WORKER, name: "b", url: "http://elsewhere" });
    expect(fleet.workers.map(({ worker }) => worker.name)).toEqual(["c", "b"]);
    fleet.left("c");
    fleet.left("b");
    expect(fleet.workers.map(({ worker, dpRank }) => [worker.name, dpRank])).toEqual([
      ["d", 0],
      ["d", 1],
    ]);
    fleet.left("d");
    expect(router.fleet.size).toBe(0);
  });

  test("goes on draining a worker that is described differently", () => {
    const fleet = fleetOn();
    fleet.appeared(WORKER);
    fleet.appeared({ ...WORKER, name: "b", batchSlots: 1 });
    fleet.drain("a");
    expect([...offered("x"), ...offered("y")]).toEqual(["place", "hold"]);
    fleet.changed({ ...WORKER, model: "m" });
    expect(phases(fleet).toSorted()).toEqual(["draining approximate", "ready approximate"]);
    expect([effects, router.queued]).toEqual([[], 1]);
    fleet.undrain("a");
    expect(effects).toMatchObject([{ kind: "place", request: "y" }]);
  });

  test("says it once where a worker claims more ranks than there is room for", () => {
    const fleet = fleetOn();
    fleet.appeared({ ...WORKER, dpRanks: 1e9 });
    expect(heard.slice(2)).toEqual(["the fleet is full at maxReplicas 2; raise it to add a#2"]);
  });

  test("leaves a rank out whose name another worker has", () => {
    const fleet = fleetOn();
    fleet.appeared({ ...WORKER, name: "a#1" });
    fleet.appeared({ ...WORKER, dpRanks: 2 });
    expect(heard.at(-1)).toBe("replica a#1 is already in the fleet; remove it first");
    expect(fleet.workers.map(({ worker, dpRank }) => [worker.name, dpRank])).toEqual([
      ["a#1", 0],
      ["a", 0],
    ]);
  });

  test("guesses the cache of a worker that counts in other blocks, and says so", () => {
    const plane = new PlayedPlane({ replayDepth: 8, snapshot: true });
    const fleet = fleetOn(plane);
    fleet.appeared({ ...WORKER, blockTokens: 32 });
    expect(phases(fleet)).toEqual(["ready approximate"]);
    expect(heard).toContain(
      "worker a has blocks of 32 tokens, the router counts in blocks of 16; its cache is guessed",
    );
  });

  test("passes on load, from events and from whoever asks for it", () => {
    let asked: LoadListener | undefined;
    const plane = new PlayedPlane({ replayDepth: 8, snapshot: true });
    const fleet = new FleetSync({
      router,
      clock: { nowNs: () => nowNs },
      carryOut: () => undefined,
      events: () => plane,
      load: () => ({
        watch: (_, listener) => {
          asked = listener;
          return { close: () => Promise.resolve() };
        },
      }),
    });
    fleet.appeared(WORKER);
    plane.say().load({ running: 3, waiting: 1, kvUsage: 0.5 });
    expect(router.describeLoad(0).reported?.running).toBe(3);
    asked?.load({ running: 4, waiting: 1, kvUsage: 0.5 });
    expect(router.describeLoad(0).reported?.running).toBe(4);
  });

  test("says once what is wrong with the one address of several ranks", () => {
    const asked: LoadListener[] = [];
    const load = {
      watch: (_: string, listener: LoadListener) => {
        asked.push(listener);
        return { close: () => Promise.resolve() };
      },
    };
    const problem = (message: string): number => heard.push(message);
    const clock = { nowNs: () => nowNs };
    const fleet = new FleetSync({ router, clock, carryOut: () => undefined, load: () => load, problem });
    fleet.appeared({ ...WORKER, dpRanks: 2 });
    for (const listener of asked) listener.problem?.("http://a/metrics: nobody answers");
    expect([asked.length, heard]).toEqual([2, ["http://a/metrics: nobody answers"]]);
  });

  test("counts pools in the router's blocks, whatever an engine counts them in", () => {
    const fleet = new FleetSync({ router, clock: { nowNs: () => nowNs }, carryOut: () => undefined });
    fleet.appeared({ ...WORKER, kvBlocks: 1000, blockTokens: 2 * router.blockTokens });
    expect(router.describeLoad(0).kvBlocks).toBe(2000);
  });

  test("takes no capacity for less than nothing, however much is claimed", () => {
    const plane = new PlayedPlane({ replayDepth: 8, snapshot: true });
    const fleet = fleetOn(plane);
    fleet.appeared({ ...WORKER, kvBlocks: 2 ** 31 - 1, blockTokens: undefined });
    fleet.appeared({ ...WORKER, name: "b" });
    plane.say("b").load({ running: 0, waiting: 0, kvUsage: 0, batchSlots: 3e9, kvBlocks: Infinity });
    expect([router.describeLoad(1).batchSlots, router.describeLoad(1).kvBlocks]).toEqual([2 ** 31 - 1, 2 ** 31 - 1]);
  });

  test("counts a pool of tokens in the router's blocks", () => {
    let asked: LoadListener | undefined;
    const watch = (_: string, listener: LoadListener): { close: () => Promise<void> } => {
      asked = listener;
      return { close: () => Promise.resolve() };
    };
    const clock = { nowNs: () => nowNs };
    const fleet = new FleetSync({ router, clock, carryOut: () => undefined, load: () => ({ watch }) });
    fleet.appeared(WORKER);
    asked?.load({ running: 0, waiting: 0, kvUsage: 0, kvBlocks: 64_000, blockTokens: 1 });
    expect(router.describeLoad(0).kvBlocks).toBe(64_000 / router.blockTokens);
  });
});
