import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Heard } from "../../../test/support/heard.ts";
import { EventFeed } from "../../core/kv-index/event-feed.ts";
import type { KvEvent } from "../../core/kv-index/types.ts";
import { TensorRtEventPublisher } from "./tensorrt-publisher.ts";
import { TensorRtEventPlane } from "./tensorrt.ts";
import type { EventListener } from "./types.ts";

const BLOCK_TOKENS = 4;
const BUFFER_EVENTS = 4;

/** Puts what it hears into a feed, and lets a test wait. */
class Hearing implements EventListener {
  readonly heard: Heard = new Heard();
  readonly feed: EventFeed;

  constructor(plane: TensorRtEventPlane) {
    const sink = { apply: () => undefined, clear: () => this.heard.note("clear"), restore: () => undefined };
    this.feed = new EventFeed(plane.capabilities, sink);
  }

  event(event: KvEvent): void {
    this.feed.accept(event, 0);
    this.heard.note(`event ${event.eventId}`);
  }

  snapshot(): void {}
  load(): void {}

  replayUnavailable(): void {
    this.heard.note("unavailable");
  }

  caughtUp(): void {
    this.heard.note("caught up");
  }
}

describe("the event plane of TensorRT-LLM", () => {
  let publisher: TensorRtEventPublisher;
  let plane: TensorRtEventPlane;
  let server: Server;
  let url: string;
  let questions = 0;
  let isBroken = false;

  beforeEach(async () => {
    questions = 0;
    isBroken = false;
    publisher = new TensorRtEventPublisher({ blockTokens: BLOCK_TOKENS, bufferEvents: BUFFER_EVENTS });
    server = createServer((request, response) => {
      questions++;
      if (isBroken) response.destroy();
      else if (!publisher.handle(request, response)) response.writeHead(404).end();
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `trtllm+http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    plane = new TensorRtEventPlane({ blockTokens: BLOCK_TOKENS, intervalMs: 1 });
  });

  afterEach(async () => {
    await plane.close();
    server.closeAllConnections();
    server.close();
  });

  function store(eventId: number): void {
    const tokens = Uint32Array.from({ length: BLOCK_TOKENS }, (_, i) => i + eventId);
    const engine = Uint32Array.of(eventId, 7);
    const parent = eventId === 0 ? null : Uint32Array.of(eventId - 1, 7);
    const event = { kind: "stored", tier: "device", parent, engine, local: null, incarnation: "", eventId } as const;
    publisher.publish(event, { tokens });
  }

  async function hearing(): Promise<Hearing> {
    const listener = new Hearing(plane);
    plane.subscribe("a", listener, { url }).catchUp();
    await listener.heard.until("caught up");
    return listener;
  }

  test("hears what happened before it came, while the engine has kept it, and what happens later", async () => {
    for (let id = 0; id < 3; id++) store(id);
    const { heard, feed } = await hearing();
    expect(heard.notes).toEqual(["event 0", "event 1", "event 2", "caught up"]);
    store(3);
    await heard.until("event 3");
    expect(feed.state).toBe("live");
    expect(plane.counts).toMatchObject({ events: 4, undecodable: 0 });
  });

  test("notices that the engine has dropped its oldest events", async () => {
    const { heard, feed } = await hearing();
    store(0);
    await heard.until("event 0");
    isBroken = true;
    for (let id = 1; id <= BUFFER_EVENTS + 2; id++) store(id);
    isBroken = false;
    await heard.until(`event ${BUFFER_EVENTS + 2}`);
    expect(heard.notes).not.toContain("event 1");
    expect(feed.state).toBe("partial");
    expect(feed.counts.gaps).toBe(1);
  });

  test("takes numbers that start again for a restart", async () => {
    const { heard, feed } = await hearing();
    store(0);
    store(1);
    await heard.until("event 1");
    heard.notes.length = 0;
    store(0);
    await heard.until("event 0");
    expect(heard.notes).toContain("clear");
    expect(feed.counts.restarts).toBe(1);
    expect(feed.state).toBe("live");
  });

  test("asks an engine once for all who listen to it, because it answers once", async () => {
    const first = await hearing();
    const second = await hearing();
    store(0);
    await Promise.all([first.heard.until("event 0"), second.heard.until("event 0")]);
    expect([first, second].map(({ feed }) => feed.state)).toEqual(["live", "live"]);
  });

  test("goes on after the engine was away", async () => {
    const { heard } = await hearing();
    isBroken = true;
    const asked = questions;
    await expect.poll(() => questions).toBeGreaterThan(asked + 1);
    isBroken = false;
    store(0);
    await heard.until("event 0");
    expect(plane.counts.reconnects).toBeGreaterThan(0);
  });
});
