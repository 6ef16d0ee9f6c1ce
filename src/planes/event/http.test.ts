import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { KvEvent, ReplicaSnapshot } from "../../core/kv-index/types.ts";
import { HttpEventPublisher } from "./http-publisher.ts";
import { HttpEventPlane } from "./http.ts";
import type { EventListener } from "./types.ts";

const event = (eventId: number): KvEvent => ({ kind: "cleared", tier: "device", incarnation: "1", eventId });

const DEAF: EventListener = {
  event: () => undefined,
  snapshot: () => undefined,
  replayUnavailable: () => undefined,
  load: () => undefined,
  caughtUp: () => undefined,
};

describe("the event plane over HTTP", () => {
  let plane: HttpEventPlane;
  let publisher: HttpEventPublisher;
  let server: Server;
  let url: string;

  beforeEach(async () => {
    plane = new HttpEventPlane({ reconnectMs: 1 });
    publisher = publish("1", -1);
    server = createServer((request, response) => {
      if (!publisher.handle(request, response)) response.writeHead(404).end();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  afterEach(async () => {
    await plane.close();
    await publisher.close();
    server.close();
    server.closeAllConnections();
  });

  function publish(incarnation: string, lastEventId: number): HttpEventPublisher {
    const snapshot = (): ReplicaSnapshot => ({ incarnation, lastEventId, runs: [] });
    return new HttpEventPublisher({ source: { snapshot }, incarnation, replayDepth: 2 });
  }

  /** Subscribes and resolves, each time it is asked, once one more snapshot has come. */
  function snapshots(): { next: () => Promise<ReplicaSnapshot>; caughtUp: Promise<void> } {
    const come: ReplicaSnapshot[] = [];
    let wake: () => void = () => undefined;
    const caughtUp = new Promise<void>((resolve) => {
      const subscription = plane.subscribe(
        "a",
        {
          ...DEAF,
          snapshot: (snapshot) => {
            come.push(snapshot);
            wake();
          },
          caughtUp: resolve,
        },
        { url },
      );
      subscription.catchUp();
    });
    return {
      caughtUp,
      next: async () => {
        while (come.length === 0) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
        return come.shift() as ReplicaSnapshot;
      },
    };
  }

  test("tells how old events were when they came, but not of those that are sent again", async () => {
    publisher.publish(event(0));
    const lags: number[] = [];
    const heard = new Promise<void>((resolve) => {
      const listener: EventListener = {
        ...DEAF,
        event: ({ eventId }) => (eventId === 1 ? resolve() : undefined),
        lag: (ageMs) => lags.push(ageMs),
        caughtUp: () => {
          subscription.replay(0, 0);
          publisher.publish(event(1));
        },
      };
      const subscription = plane.subscribe("a", listener, { url });
      subscription.catchUp();
    });
    await heard;
    expect(lags).toHaveLength(1);
    expect(lags[0]).toBeGreaterThanOrEqual(0);
  });

  test("brings the state of a restarted worker though it has nothing to say", async () => {
    const { next, caughtUp } = snapshots();
    await caughtUp;
    expect((await next()).incarnation).toBe("1");
    await publisher.close();
    publisher = publish("2", -1);
    server.closeAllConnections();
    expect((await next()).incarnation).toBe("2");
  });

  test("brings the state when more was missed than the worker keeps", async () => {
    const { next, caughtUp } = snapshots();
    await caughtUp;
    await next();
    const before = publisher;
    await before.close();
    publisher = publish("1", 4);
    for (let id = 0; id <= 4; id++) publisher.publish(event(id));
    server.closeAllConnections();
    expect((await next()).lastEventId).toBe(4);
  });

  test("says what a range must be and what is gone", async () => {
    for (let id = 0; id <= 4; id++) publisher.publish(event(id));
    const statusOf = async (query: string): Promise<number> => (await fetch(`${url}/events/range?${query}`)).status;
    expect(await statusOf("from=3&to=4&incarnation=1")).toBe(200);
    expect(await statusOf("from=3&to=4&incarnation=2")).toBe(410);
    expect(await statusOf("from=0&to=4&incarnation=1")).toBe(410);
    expect(await statusOf("from=-1&to=4&incarnation=1")).toBe(400);
    expect((await fetch(`${url}/elsewhere`)).status).toBe(404);
  });

  test("leaves requests for what is no path to others", () => {
    const asked = (path: string): boolean =>
      publisher.handle({ method: "GET", url: path } as IncomingMessage, {} as ServerResponse);
    expect(["//", "//?from=1", "//:1", "/events:1", "*"].map(asked)).toEqual([false, false, false, false, false]);
  });

  test("counts what it cannot understand", async () => {
    await publisher.close();
    let stream: (text: string) => void = () => undefined;
    server.removeAllListeners("request");
    server.on("request", (_, response) => {
      stream = (text) => response.write(text);
      response.writeHead(200).flushHeaders();
      stream('event: head\ndata: {"incarnation":"1","lastEventId":-1,"nextEventId":0}\n\n');
      stream("event: kv\ndata: nonsense\n\n");
      stream('event: news\ndata: "of a later version"\n\n');
      stream('event: kv\ndata: {"incarnation":"1","eventId":0,"kind":"cleared","tier":"device","why":1}\n\n');
    });
    const heard = new Promise<KvEvent>((resolve) => {
      plane.subscribe("a", { ...DEAF, event: resolve }, { url: `${url}/` });
    });
    expect(await heard).toEqual(event(0));
    expect(plane.counts).toMatchObject({ events: 1, undecodable: 1 });
  });

  test("needs an address", () => {
    expect(() => plane.subscribe("a", DEAF)).toThrow("a has no URL to hear its events from");
  });
});
