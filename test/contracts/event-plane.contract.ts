import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { hashBlocks, NO_IDENTITY } from "../../src/core/hash.ts";
import { EventFeed, type FeedRequest } from "../../src/core/kv-index/event-feed.ts";
import type { KvEvent, ReplicaSnapshot } from "../../src/core/kv-index/types.ts";
import type { ReportedLoad } from "../../src/core/load/load-description.ts";
import { Heard } from "../support/heard.ts";
import type { SkippableTest } from "../support/required-component.ts";
import type {
  EventAddress,
  EventListener,
  EventPlane,
  EventPublisher,
  EventSubscription,
} from "../../src/planes/event/types.ts";

export const CONTRACT_BLOCK_TOKENS = 4;
export const CONTRACT_REPLAY_DEPTH = 8;

/** A worker that publishes on the plane under test. */
export interface PublishingWorker {
  readonly publisher: EventPublisher;
  readonly address: EventAddress | undefined;
  /** Resolves once a subscriber would hear what is published next; planes that lose nothing need no wait. */
  listenedTo(subscribers: number): Promise<void>;
  /** Resolves once whoever listens from now on does not hear what was published before; where there is a broker on the way. */
  sent?(): Promise<void>;
  /** Cuts all connections; the worker itself goes on. */
  cutConnections?(): Promise<void>;
  close(): Promise<void>;
}

export interface EventPlaneUnderTest {
  readonly title: string;
  /** Makes a plane, or skips the test where what it needs is missing. */
  createPlane(test: SkippableTest): Promise<EventPlane>;
  /** Starts a worker; with `instead` it takes the place of another, as after a restart of its process. */
  createWorker(
    plane: EventPlane,
    replica: string,
    snapshot: () => ReplicaSnapshot,
    incarnation: string,
    instead?: PublishingWorker,
  ): Promise<PublishingWorker>;
  /** Whether load travels on this plane. */
  readonly carriesLoad: boolean;
}

/** Notes what it hears and lets a test wait for it. */
class NotingListener implements EventListener {
  readonly #heard: Heard = new Heard();
  readonly events: KvEvent[] = [];
  readonly loads: ReportedLoad[] = [];

  event(event: KvEvent): void {
    this.events.push(event);
    this.#heard.note(`event ${event.eventId}`);
  }

  snapshot({ lastEventId }: ReplicaSnapshot): void {
    this.#heard.note(`snapshot ${lastEventId}`);
  }

  replayUnavailable(): void {
    this.#heard.note("unavailable");
  }

  load(load: ReportedLoad): void {
    this.loads.push(load);
    this.#heard.note(`load ${load.running}`);
  }

  caughtUp(): void {
    this.#heard.note("caught up");
  }

  get heard(): string[] {
    return this.#heard.notes;
  }

  until(what: string): Promise<void> {
    return this.#heard.until(what);
  }
}

/** A cache that grows by a block per event, and what it publishes. */
class GrowingCache {
  readonly #incarnation: string;
  readonly #hashes: number[] = [];
  readonly #tokens: Uint32Array;

  constructor(incarnation: string) {
    this.#incarnation = incarnation;
    this.#tokens = Uint32Array.from({ length: 1024 }, (_, i) => i + incarnation.length);
  }

  grow(publisher: EventPublisher, blocks = 1): void {
    for (let i = 0; i < blocks; i++) {
      const { event, tokens } = this.#next();
      publisher.publish(event, { tokens });
    }
  }

  /** A change that nobody hears of. */
  growUnheard(): void {
    this.#next();
  }

  snapshot(): ReplicaSnapshot {
    const sequence = Uint32Array.from(this.#hashes);
    const runs = sequence.length === 0 ? [] : [{ tier: "device" as const, sequence, engine: null }];
    return { incarnation: this.#incarnation, lastEventId: sequence.length / 2 - 1, runs };
  }

  /** The engine hashes of all blocks, and the local ones that their tokens have. */
  expected(eventId: number): { engine: Uint32Array; parent: Uint32Array | null; local: Uint32Array } {
    const local = new Uint32Array(2);
    const tokens = this.#tokens.slice(eventId * CONTRACT_BLOCK_TOKENS, (eventId + 1) * CONTRACT_BLOCK_TOKENS);
    hashBlocks(tokens, CONTRACT_BLOCK_TOKENS, CONTRACT_BLOCK_TOKENS, NO_IDENTITY, local);
    const parent = eventId === 0 ? null : Uint32Array.from(this.#hashes.slice(2 * eventId - 2, 2 * eventId));
    return { engine: Uint32Array.from(this.#hashes.slice(2 * eventId, 2 * eventId + 2)), parent, local };
  }

  #next(): { event: KvEvent; tokens: Uint32Array } {
    const eventId = this.#hashes.length / 2;
    const parent = eventId === 0 ? null : Uint32Array.from(this.#hashes.slice(-2));
    this.#hashes.push(0x1000 + eventId, 0xfff0_0000 + this.#incarnation.length);
    const tokens = this.#tokens.slice(eventId * CONTRACT_BLOCK_TOKENS, (eventId + 1) * CONTRACT_BLOCK_TOKENS);
    const engine = Uint32Array.from(this.#hashes.slice(-2));
    const event: KvEvent = {
      kind: "stored",
      parent,
      engine,
      local: null,
      incarnation: this.#incarnation,
      eventId,
      tier: "device",
    };
    return { event, tokens };
  }
}

/** What every event plane must do, whatever carries it. */
export function describeEventPlaneContract(subject: EventPlaneUnderTest): void {
  describe(`event plane ${subject.title}`, () => {
    let plane: EventPlane;
    let cache: GrowingCache;
    let worker: PublishingWorker;
    const open: { close(): Promise<void> }[] = [];

    beforeEach(async (context) => {
      plane = await subject.createPlane(context);
      ({ cache, worker } = await start("a", "1"));
    });

    afterEach(async () => {
      await plane.close();
      for (const one of open.splice(0)) await one.close();
    });

    async function start(
      replica: string,
      incarnation: string,
      instead?: PublishingWorker,
    ): Promise<{ cache: GrowingCache; worker: PublishingWorker }> {
      const made = new GrowingCache(incarnation);
      const started = await subject.createWorker(plane, replica, () => made.snapshot(), incarnation, instead);
      open.push(started);
      return { cache: made, worker: started };
    }

    /** Subscribes and waits until nothing that is published from now on can be missed. */
    async function listen(
      listener: EventListener & Pick<NotingListener, "until">,
      to: PublishingWorker = worker,
      subscribers = 1,
    ): Promise<EventSubscription> {
      const replica = to === worker ? "a" : "b";
      const subscription = plane.subscribe(replica, listener, to.address);
      subscription.catchUp();
      await listener.until("caught up");
      await to.listenedTo(subscribers);
      return subscription;
    }

    test("delivers a replica's events in order, whole, and to those alone who listen to it", async () => {
      const other = await start("b", "1");
      const [mine, theirs] = [new NotingListener(), new NotingListener()];
      await listen(mine);
      await listen(theirs, other.worker);
      cache.grow(worker.publisher, 3);
      worker.publisher.publish({
        kind: "removed",
        engine: cache.expected(2).engine,
        incarnation: "1",
        eventId: 3,
        tier: "host",
      });
      worker.publisher.publish({ kind: "cleared", incarnation: "1", eventId: 4, tier: "device" });
      other.cache.grow(other.worker.publisher);
      await Promise.all([mine.until("event 4"), theirs.until("event 0")]);
      expect(mine.events.map(({ eventId, kind, tier }) => `${eventId} ${kind} ${tier}`)).toEqual([
        "0 stored device",
        "1 stored device",
        "2 stored device",
        "3 removed host",
        "4 cleared device",
      ]);
      for (const event of mine.events.slice(0, 3)) {
        const { engine, parent, local } = cache.expected(event.eventId);
        // Some wires carry our local hashes, some the tokens to compute them from, and some need neither.
        expect(event).toMatchObject({ engine, parent, local: event.kind === "stored" && event.local && local });
      }
      expect(theirs.events).toHaveLength(1);
      expect(plane.counts).toMatchObject({ undecodable: 0 });
      expect(plane.counts.events).toBeGreaterThanOrEqual(6);
    });

    test("brings whoever comes late up to date", async () => {
      cache.grow(worker.publisher, 3);
      await worker.sent?.();
      const late = new NotingListener();
      await listen(late);
      const told = plane.capabilities.snapshot ? ["snapshot 2"] : ["event 0", "event 1", "event 2"];
      expect(late.heard).toEqual([...told, "caught up"]);
      cache.grow(worker.publisher);
      await late.until("event 3");
    });

    test("keeps nothing of a subscription that was closed", async () => {
      const subscription = await listen(new NotingListener());
      await subscription.close();
      const close = vi.spyOn(subscription, "close");
      await plane.close();
      expect(close).not.toHaveBeenCalled();
    });

    test("sends a range again while it is kept, and says so when it is not", async () => {
      const listener = new NotingListener();
      const subscription = await listen(listener);
      cache.grow(worker.publisher, CONTRACT_REPLAY_DEPTH + 4);
      const last = CONTRACT_REPLAY_DEPTH + 3;
      await listener.until(`event ${last}`);
      listener.heard.length = 0;
      subscription.replay(last - 2, last - 1);
      await listener.until(`event ${last - 1}`);
      expect(listener.heard).toEqual([`event ${last - 2}`, `event ${last - 1}`]);
      subscription.replay(0, 1);
      await listener.until("unavailable");
    });

    test("sends the whole state when asked, where it can", async () => {
      const listener = new NotingListener();
      const subscription = await listen(listener);
      cache.grow(worker.publisher, 2);
      await listener.until("event 1");
      subscription.resync();
      if (plane.capabilities.snapshot) await listener.until("snapshot 1");
      else expect(listener.heard).not.toContain("snapshot 1");
    });

    test("lets a feed repair what it lost: by the range, then by the state or as partial", async () => {
      const { feed, listener } = feeding();
      const subscription = await listen(listener);
      listener.carryOut = (request) => carryOut(subscription, request);
      cache.grow(worker.publisher, 2);
      await listener.until("event 1");
      listener.loses.add(2);
      cache.grow(worker.publisher, 2);
      await listener.until("event 3");
      await listener.until("event 2");
      expect(feed.state).toBe("live");
      expect(feed.lastEventId).toBe(3);
      for (let id = 4; id < 4 + 2 * CONTRACT_REPLAY_DEPTH; id++) listener.loses.add(id);
      cache.grow(worker.publisher, 2 * CONTRACT_REPLAY_DEPTH + 1);
      const last = 4 + 2 * CONTRACT_REPLAY_DEPTH;
      await listener.until(`event ${last}`);
      await listener.settled(feed);
      expect(feed.lastEventId).toBe(last);
      expect(feed.state).toBe(plane.capabilities.snapshot ? "live" : "partial");
    });

    test("shows a restart as another incarnation that counts from 0", async () => {
      const { feed, listener } = feeding();
      const subscription = await listen(listener);
      listener.carryOut = (request) => carryOut(subscription, request);
      cache.grow(worker.publisher, 3);
      await listener.until("event 2");
      const before = feed.incarnation;
      const again = await start("a", "another", worker);
      await again.worker.listenedTo(1);
      listener.heard.length = 0;
      again.cache.grow(again.worker.publisher, 2);
      await listener.until("event 1");
      await listener.settled(feed);
      expect(feed.incarnation).not.toBe(before);
      expect(feed.lastEventId).toBe(1);
      expect(feed.counts.restarts).toBe(1);
      expect(feed.state).toBe("live");
    });

    test("goes on after a lost connection, without a gap that stays", async (context) => {
      const cut = worker.cutConnections?.bind(worker);
      if (cut === undefined) {
        context.skip("nothing connects inside one process");
        return;
      }
      const { feed, listener } = feeding();
      const subscription = await listen(listener);
      listener.carryOut = (request) => carryOut(subscription, request);
      cache.grow(worker.publisher, 2);
      await listener.until("event 1");
      const before = feed.incarnation;
      await cut();
      cache.grow(worker.publisher, 2);
      await worker.listenedTo(2);
      cache.grow(worker.publisher);
      await listener.until("event 4");
      await listener.settled(feed);
      expect(feed.incarnation).toBe(before);
      expect(feed.lastEventId).toBe(4);
      expect(feed.state).toBe("live");
      expect(feed.counts.restarts).toBe(0);
      expect(plane.counts.reconnects).toBeGreaterThan(0);
    });

    test.runIf(subject.carriesLoad)("carries what the engine says of its load", async () => {
      const listener = new NotingListener();
      await listen(listener);
      worker.publisher.load({ running: 3, waiting: 1, kvUsage: 0.5, batchSlots: 16, kvBlocks: 100 });
      await listener.until("load 3");
      expect(listener.loads).toEqual([{ running: 3, waiting: 1, kvUsage: 0.5, batchSlots: 16, kvBlocks: 100 }]);
    });

    test("delivers nothing to a subscription that is closed, and goes on for others", async () => {
      const [leaving, staying] = [new NotingListener(), new NotingListener()];
      const subscription = await listen(leaving);
      await listen(staying, worker, 2);
      cache.grow(worker.publisher);
      await Promise.all([leaving.until("event 0"), staying.until("event 0")]);
      await subscription.close();
      const heardBefore = leaving.heard.length;
      cache.grow(worker.publisher);
      await staying.until("event 1");
      expect(leaving.heard).toHaveLength(heardBefore);
    });

    /** A feed behind a listener that loses some events on their first way. */
    function feeding(): { feed: EventFeed; listener: FeedingListener } {
      const feed = new EventFeed(
        { ...plane.capabilities, replayDepth: CONTRACT_REPLAY_DEPTH },
        { apply: () => undefined, clear: () => undefined, restore: () => undefined },
      );
      return { feed, listener: new FeedingListener(feed) };
    }
  });
}

class FeedingListener extends NotingListener {
  readonly loses = new Set<number>();
  carryOut: (request: FeedRequest) => void = () => undefined;
  readonly #feed: EventFeed;

  constructor(feed: EventFeed) {
    super();
    this.#feed = feed;
  }

  override event(event: KvEvent): void {
    if (this.loses.delete(event.eventId)) return;
    this.#request(this.#feed.accept(event, 0));
    super.event(event);
  }

  override snapshot(snapshot: ReplicaSnapshot): void {
    this.#request(this.#feed.restore(snapshot, 0));
    super.snapshot(snapshot);
  }

  override replayUnavailable(): void {
    this.#request(this.#feed.replayUnavailable(0));
    super.replayUnavailable();
  }

  /** Resolves once the feed waits for nothing. */
  async settled(feed: EventFeed): Promise<void> {
    while (feed.state === "stale" || feed.state === "resyncing") {
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
  }

  #request(request: FeedRequest | undefined): void {
    if (request !== undefined) this.carryOut(request);
  }
}

function carryOut(subscription: EventSubscription, request: FeedRequest): void {
  if (request.kind === "replay") subscription.replay(request.fromEventId, request.toEventId);
  else subscription.resync();
}
