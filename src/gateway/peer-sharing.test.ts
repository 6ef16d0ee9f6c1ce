import { afterEach, describe, expect, test, vi } from "vitest";
import { createPolicy } from "../core/policy/registry.ts";
import { Router } from "../core/router.ts";
import type { RouterOptions } from "../core/router-options.ts";
import { MemoryPeers } from "../planes/peers/memory.ts";
import type { DecidedRequest, Placement } from "./decider.ts";
import { LocalDecider } from "./local-decider.ts";
import { monotonicClock } from "./monotonic-clock.ts";
import { PeerSharing } from "./peer-sharing.ts";

/** All at once, so that a turn of the event loop is enough. */
const TIMES = { batchMs: 0, aliveMs: 10, leaseMs: 250 };

interface SharingGateway {
  readonly router: Router;
  readonly decider: LocalDecider;
  readonly sharing: PeerSharing;
}

const gateways: SharingGateway[] = [];

function start(peers: MemoryPeers, name: string, options: Partial<RouterOptions> = {}, slots = 100): SharingGateway {
  const admission = { mode: "queue", watermarks: { batchSlotsFraction: 1 } } as const;
  const all = { blockTokens: 16, maxReplicas: 4, maxBlocks: 1024, admission, ...options };
  const router = new Router(createPolicy("least-loaded"), all);
  const clock = monotonicClock();
  const sharing = new PeerSharing({ router, clock, plane: peers.join(), name, ...TIMES });
  const decider = new LocalDecider({ router, clock, requests: sharing });
  sharing.onFreed(() => decider.tick());
  for (const worker of ["a", "b"])
    decider.fleet.appeared({ name: worker, url: `http://${worker}:1`, batchSlots: slots });
  const gateway = { router, decider, sharing };
  gateways.push(gateway);
  return gateway;
}

afterEach(async () => {
  for (const { decider, sharing } of gateways.splice(0)) {
    await sharing.close();
    await decider.close();
  }
});

/** Offers a request and returns where it was placed, once it was. */
function offer({ decider }: SharingGateway, id: string, sequence = Uint32Array.of(1, 2, 3, 4)): Promise<Placement> {
  return new Promise((resolve, reject) => {
    const decided: DecidedRequest = {
      place: resolve,
      shed: ({ message }) => reject(new Error(message)),
      over: () => {},
    };
    const preparation = { parseMs: 0, tokenizeMs: 0, hashMs: 0 };
    decider.offer({ id, promptTokens: 40, sequence, blocks: sequence.length / 2, preparation }, decided);
  });
}

describe("gateways that tell each other of their requests", () => {
  test("count each other's as load, from the placement to the end", async () => {
    const peers = new MemoryPeers();
    const [one, two] = [start(peers, "one"), start(peers, "two")];
    const { worker } = await offer(one, "x");
    await vi.waitFor(() => expect(two.sharing.peers).toMatchObject([{ name: "one", inFlight: 1 }]));
    // The idle one is chosen only by a gateway that knows of the other's request.
    expect((await offer(two, "x")).worker).not.toBe(worker);
    one.decider.firstToken("x");
    one.decider.grew("x", 7);
    const replica = two.router.fleet.find(worker)!;
    await vi.waitFor(() => expect(two.router.load.columns.contextTokens[replica]).toBe(47));
    one.decider.ended("x", { outcome: "completed" });
    await vi.waitFor(() => expect(two.sharing.peers).toMatchObject([{ inFlight: 0 }]));
    expect(two.router.load.size).toBe(1);
  });

  test("expect each other's prompts in caches, unless their blocks have another size", async () => {
    const peers = new MemoryPeers();
    const [one, two, odd] = [start(peers, "one"), start(peers, "two"), start(peers, "odd", { blockTokens: 8 })];
    const { worker } = await offer(one, "x", Uint32Array.of(9, 9, 8, 8));
    await vi.waitFor(() => expect([two, odd].map(({ sharing }) => sharing.peers.length)).toEqual([2, 2]));
    await vi.waitFor(() => expect(odd.router.load.size).toBe(1));
    const depth = ({ router }: SharingGateway): number =>
      router.index.match(Uint32Array.of(9, 9, 8, 8), 2).cached[router.fleet.find(worker)!];
    expect([depth(two), depth(odd)]).toEqual([2, 0]);
    const kept = { sequence: Uint32Array.of(9, 9, 8, 8, 7, 7), blocks: 3 };
    one.decider.firstToken("x");
    one.decider.ended("x", { outcome: "completed", kept });
    await vi.waitFor(() => expect([two, odd].map(({ router }) => router.load.size)).toEqual([0, 0]));
    const withAnswer = ({ router }: SharingGateway): number =>
      router.index.match(kept.sequence, 3).cached[router.fleet.find(worker)!];
    expect([one, two, odd].map(withAnswer)).toEqual([3, 3, 0]);
  });

  test("place what waits as soon as another's request has ended", async () => {
    const peers = new MemoryPeers();
    const [one, two] = [start(peers, "one", {}, 1), start(peers, "two", {}, 1)];
    await Promise.all([offer(one, "x"), offer(one, "y")]);
    await vi.waitFor(() => expect(two.router.load.size).toBe(2));
    const waiting = offer(two, "z");
    expect(two.router.queued).toBe(1);
    one.decider.ended("x", { outcome: "completed" });
    expect((await waiting).worker).toBeDefined();
  });

  test("tell one that comes late what is under way, and others nothing twice", async () => {
    const peers = new MemoryPeers();
    const [one, two] = [start(peers, "one"), start(peers, "two")];
    await offer(one, "x");
    one.decider.firstToken("x");
    one.decider.grew("x", 5);
    await vi.waitFor(() => expect(two.router.load.columns.contextTokens).toContain(45));
    const late = start(peers, "late");
    await vi.waitFor(() => expect(late.router.load.columns.contextTokens).toContain(45));
    expect([two.router.load.size, late.router.load.size]).toEqual([1, 1]);
    expect(two.router.load.columns.contextTokens).toContain(45);
  });

  test("forget one that leaves at once, and one that falls silent after a while", async () => {
    const peers = new MemoryPeers();
    const [one, two] = [start(peers, "one"), start(peers, "two")];
    await Promise.all([offer(one, "x"), offer(two, "y")]);
    const watcher = start(peers, "watcher");
    await vi.waitFor(() => expect(watcher.router.load.size).toBe(2));
    await one.sharing.close();
    await vi.waitFor(() => expect(watcher.sharing.peers.map(({ name }) => name)).toEqual(["two"]));
    expect(watcher.router.load.size).toBe(1);
    const silent = peers.join();
    silent.tell({
      from: "silent",
      blockTokens: 16,
      kind: "news",
      open: [],
      news: [
        { kind: "placed", request: "z", replica: "a", promptTokens: 16, cachedTokens: 0, sequence: new Uint32Array(0) },
      ],
    });
    await vi.waitFor(() => expect(watcher.sharing.peers.map(({ name }) => name)).toContain("silent"));
    await vi.waitFor(() => expect(watcher.sharing.peers.map(({ name }) => name)).toEqual(["two"]));
    expect(watcher.router.load.size).toBe(1);
  });

  test("make up for lost news by saying what they still have", async () => {
    const peers = new MemoryPeers();
    const watcher = start(peers, "watcher");
    const other = peers.join();
    const placed = (request: string) =>
      ({
        kind: "placed",
        request,
        replica: "a",
        promptTokens: 16,
        cachedTokens: 0,
        sequence: new Uint32Array(0),
      }) as const;
    const base = { from: "other", blockTokens: 16, news: [], open: [] };
    other.tell({ ...base, kind: "news", news: [placed("1"), placed("2")] });
    await vi.waitFor(() => expect(watcher.router.load.size).toBe(2));
    other.tell({ ...base, kind: "alive", open: ["2"] });
    await vi.waitFor(() => expect(watcher.router.load.size).toBe(1));
    expect(watcher.router.load.lateSignals).toBe(0);
  });
});
