import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import * as zmq from "zeromq";
import { EventFeed } from "../../core/kv-index/event-feed.ts";
import type { KvEvent, ReplicaSnapshot } from "../../core/kv-index/types.ts";
import { encodeEngineBatch } from "../../wire/kv-events/engine-encoder.ts";
import { sequenceFrame } from "./parts/zmq-frames.ts";
import type { EventListener, EventSubscription } from "./types.ts";
import { ZmqEventPublisher } from "./zmq-publisher.ts";
import { ZmqEventPlane } from "./zmq.ts";
import { Heard } from "../../../test/support/heard.ts";

const BLOCK_TOKENS = 4;
const LOCAL = "tcp://127.0.0.1:*";

const cleared = (eventId: number): KvEvent => ({ kind: "cleared", tier: "device", incarnation: "1", eventId });

/** Puts what it hears into a feed, carries out what that asks for, and lets a test wait. */
class Hearing implements EventListener {
  readonly #heard: Heard = new Heard();
  readonly feed: EventFeed;
  readonly events: KvEvent[] = [];
  subscription: EventSubscription | undefined;
  problem: (message: string) => void = () => undefined;

  constructor(plane: ZmqEventPlane) {
    const sink = { apply: () => undefined, clear: () => this.heard.push("clear"), restore: () => undefined };
    this.feed = new EventFeed(plane.capabilities, sink);
  }

  event(event: KvEvent): void {
    this.events.push(event);
    const request = this.feed.accept(event, 0);
    if (request?.kind === "replay") this.subscription?.replay(request.fromEventId, request.toEventId);
    this.#heard.note(`event ${event.eventId}`);
  }

  snapshot(snapshot: ReplicaSnapshot): void {
    this.feed.restore(snapshot, 0);
    this.#heard.note(`snapshot ${snapshot.lastEventId}`);
  }

  replayUnavailable(): void {
    this.feed.replayUnavailable(0);
    this.#heard.note("unavailable");
  }

  load(): void {
    this.#heard.note("load");
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

describe("the event plane over ZMQ", () => {
  let plane: ZmqEventPlane;
  const open: { close(): unknown }[] = [];

  beforeEach(async () => {
    plane = await ZmqEventPlane.load({ blockTokens: BLOCK_TOKENS, answerMs: 2000 });
  });

  afterEach(async () => {
    await plane.close();
    for (const one of open.splice(0)) await one.close();
  });

  async function publishing(endpoint: string, replayEndpoint: string | undefined): Promise<ZmqEventPublisher> {
    const publisher = await ZmqEventPublisher.load({ endpoint, replayEndpoint, blockTokens: BLOCK_TOKENS });
    open.push(publisher);
    return publisher;
  }

  /** An engine that is started again where it was; the system gives an address back some time after its socket has closed. */
  function publishingAgain(before: ZmqEventPublisher): Promise<ZmqEventPublisher> {
    return vi.waitFor(() => publishing(before.endpoint, before.replayEndpoint), { timeout: 10_000, interval: 20 });
  }

  function listenTo(url: string, replayUrl: string | undefined, topic?: string): Hearing {
    const hearing = new Hearing(plane);
    hearing.subscription = plane.subscribe("a", hearing, { url, replayUrl, topic });
    hearing.subscription.catchUp();
    return hearing;
  }

  test("notices that an engine was restarted though it has nothing to say", async () => {
    const publisher = await publishing(LOCAL, LOCAL);
    const hearing = listenTo(publisher.endpoint, publisher.replayEndpoint);
    await hearing.until("caught up");
    await publisher.subscribed(1);
    publisher.publish(cleared(0));
    await hearing.until("event 0");
    await publisher.close();
    await publishingAgain(publisher);
    await hearing.until("snapshot -1");
    expect(hearing.heard).toContain("clear");
    expect(hearing.feed.state).toBe("live");
    expect(plane.counts.reconnects).toBe(1);
  });

  test("goes on as partial when an engine without a replay socket was heard too late", async () => {
    const publisher = await publishing(LOCAL, undefined);
    const hearing = listenTo(publisher.endpoint, undefined);
    await hearing.until("caught up");
    await publisher.subscribed(1);
    publisher.publish({ kind: "removed", engine: Uint32Array.of(1, 2), tier: "device", incarnation: "1", eventId: 2 });
    await hearing.until("unavailable");
    expect(hearing.feed.state).toBe("partial");
  });

  describe("with an engine that sends what it likes", () => {
    let engine: zmq.XPublisher;
    let replays: zmq.Router;

    beforeEach(async () => {
      engine = new zmq.XPublisher({ linger: 0 });
      replays = new zmq.Router({ linger: 0 });
      open.push(engine, replays);
      await engine.bind(LOCAL);
      await replays.bind(LOCAL);
    });

    const batch = (...eventIds: readonly number[]): Uint8Array =>
      encodeEngineBatch(
        { timestampSeconds: 1, dpRank: 0, blockTokens: BLOCK_TOKENS },
        eventIds.map((eventId) => ({ change: cleared(eventId) })),
      );

    test("takes a batch of several changes as one event, and an empty one as none", async () => {
      const hearing = listenTo(engine.lastEndpoint ?? "", undefined);
      await engine.receive();
      await engine.send(["", sequenceFrame(0), batch(0, 1, 2)]);
      await engine.send(["", sequenceFrame(1), batch()]);
      await hearing.until("event 1");
      expect(hearing.events[0].more).toHaveLength(2);
      expect(hearing.events[1]).toMatchObject({ kind: "removed", engine: new Uint32Array(0) });
      expect(hearing.feed.state).toBe("live");
    });

    test("counts a payload that is none, finds that it cannot be had again, and says partial", async () => {
      const hearing = listenTo(engine.lastEndpoint ?? "", replays.lastEndpoint ?? undefined);
      const answer = async (...frames: readonly (readonly [number, Uint8Array])[]): Promise<number> => {
        const [client, , start] = await replays.receive();
        for (const [sequence, payload] of frames) await replays.send([client, "", sequenceFrame(sequence), payload]);
        await replays.send([client, "", Buffer.alloc(8, 0xff), ""]);
        return Number(start.readBigUInt64BE());
      };
      await engine.receive();
      expect(await answer()).toBe(0);
      await hearing.until("caught up");
      const removed = encodeEngineBatch({ timestampSeconds: 2, dpRank: 0, blockTokens: BLOCK_TOKENS }, []);
      await engine.send(["", sequenceFrame(0), batch(0)]);
      await engine.send(["", sequenceFrame(1), Buffer.from("nonsense")]);
      await engine.send(["", Buffer.from("short"), batch(0)]);
      await engine.send(["", sequenceFrame(2), removed]);
      expect(await answer([1, Buffer.from("nonsense")], [2, removed])).toBe(1);
      await hearing.until("unavailable");
      expect(hearing.feed.state).toBe("partial");
      expect(plane.counts.undecodable).toBe(3);
    });

    test("tells the age of messages, but of those whose clock says nothing", async () => {
      const ages: number[] = [];
      const hearing = Object.assign(new Hearing(plane), { lag: (ageMs: number) => ages.push(ageMs) });
      hearing.subscription = plane.subscribe("a", hearing, { url: engine.lastEndpoint ?? "" });
      await engine.receive();
      const times = [Number.NaN, -1e308, 0, Infinity, Date.now() / 1000];
      for (const [sequence, timestampSeconds] of times.entries()) {
        const head = { timestampSeconds, dpRank: 0, blockTokens: BLOCK_TOKENS };
        await engine.send(["", sequenceFrame(sequence), encodeEngineBatch(head, [{ change: cleared(0) }])]);
      }
      await hearing.until("event 4");
      expect(ages).toEqual([expect.any(Number)]);
      expect(ages[0]).toBeLessThan(60_000);
    });

    test("hears its topic alone", async () => {
      const hearing = listenTo(engine.lastEndpoint ?? "", undefined, "kv");
      await engine.receive();
      await engine.send(["other", sequenceFrame(0), batch(0)]);
      await engine.send(["kv", sequenceFrame(7), batch(0)]);
      await hearing.until("event 7");
      expect(hearing.heard).not.toContain("event 0");
    });
  });

  test("goes on hearing when the replay socket is not where it should be", async () => {
    await plane.close();
    plane = await ZmqEventPlane.load({ blockTokens: BLOCK_TOKENS, answerMs: 20 });
    const publisher = await publishing(LOCAL, undefined);
    const hearing = listenTo(publisher.endpoint, "tcp://127.0.0.1:1");
    await publisher.subscribed(1);
    publisher.publish(cleared(0));
    await hearing.until("event 0");
    await publisher.close();
    const again = await publishingAgain(publisher);
    await again.subscribed(1);
    again.publish(cleared(0));
    again.publish(cleared(1));
    await hearing.until("event 1");
    expect(hearing.feed.counts.restarts).toBe(1);
    expect(hearing.heard).not.toContain("caught up");
  });

  test.each([
    ["tcp://host:port", "ZMQ cannot connect to tcp://host:port: Invalid argument"],
    ["tcp://127.0.0.1", "ZMQ cannot connect to tcp://127.0.0.1: Invalid argument"],
    [`ipc://${"x".repeat(300)}`, "File name too long"],
    ["tcp://127.0.0.1:99999", "tcp://127.0.0.1:99999 has no port from 1 to 65535"],
  ])("does not listen to %s, and says why", (url, reason) => {
    expect(() => plane.subscribe("a", new Hearing(plane), { url })).toThrow(reason);
  });

  test("does not listen to a rank whose port would be somebody else's", () => {
    const address = { url: "tcp://127.0.0.1:65535", dpRank: 1 };
    expect(() => plane.subscribe("a#1", new Hearing(plane), address)).toThrow(
      "tcp://127.0.0.1:65535, counted up to rank 1, has no port from 1 to 65535",
    );
  });

  test.each(["tcp://host:port", "tcp://127.0.0.1:99999"])(
    "hears an engine whose replay socket is said to be at %s, and says that nothing can be asked for",
    async (replayUrl) => {
      const publisher = await publishing(LOCAL, undefined);
      const problems: string[] = [];
      const hearing = new Hearing(plane);
      hearing.problem = (message) => problems.push(message);
      const subscription = plane.subscribe("a", hearing, { url: publisher.endpoint, replayUrl });
      hearing.subscription = subscription;
      subscription.catchUp();
      await hearing.until("caught up");
      await publisher.subscribed(1);
      publisher.publish(cleared(2));
      await hearing.until("unavailable");
      expect(hearing.feed.state).toBe("live");
      expect(problems).toEqual([expect.stringContaining("nothing can be asked for again: ")]);
    },
  );

  test("refuses events of another block size, and says why and what to do, once", async () => {
    const publisher = await ZmqEventPublisher.load({ endpoint: LOCAL, blockTokens: 1 });
    const problems: string[] = [];
    const hearing = listenTo(publisher.endpoint, undefined);
    hearing.problem = (message) => problems.push(message);
    await publisher.subscribed(1);
    for (let eventId = 0; eventId < 2; eventId++) {
      const stored = { kind: "stored", parent: null, engine: Uint32Array.of(1, 2), local: null } as const;
      const event: KvEvent = { ...stored, tier: "device", incarnation: "1", eventId };
      publisher.publish(event, { tokens: Uint32Array.of(7) });
    }
    await hearing.until("event 1");
    await publisher.close();
    expect(plane.counts.ignored).toBe(2);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain("its KV blocks have 1 tokens, the router counts in blocks of 4");
    expect(problems[0]).toContain("--page-size 4 (SGLang)");
  });

  test("cannot publish stored blocks without their tokens", async () => {
    const publisher = await publishing(LOCAL, undefined);
    const stored = { kind: "stored", parent: null, engine: Uint32Array.of(1, 2), local: null } as const;
    const event: KvEvent = { ...stored, tier: "device", incarnation: "1", eventId: 0 };
    expect(() => publisher.publish(event)).toThrow("a stored event needs its tokens to be published over ZMQ");
  });
});
