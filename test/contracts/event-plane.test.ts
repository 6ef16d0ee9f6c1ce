import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { vi } from "vitest";
import { HttpEventPlane } from "../../src/planes/event/http.ts";
import { HttpEventPublisher } from "../../src/planes/event/http-publisher.ts";
import { MemoryEventPlane } from "../../src/planes/event/memory.ts";
import { ZmqEventPlane } from "../../src/planes/event/zmq.ts";
import { ZmqEventPublisher } from "../../src/planes/event/zmq-publisher.ts";
import { CuttableProxy } from "../support/cuttable-proxy.ts";
import {
  CONTRACT_BLOCK_TOKENS,
  CONTRACT_REPLAY_DEPTH,
  describeEventPlaneContract,
  type PublishingWorker,
} from "./event-plane.contract.ts";

const replayDepth = CONTRACT_REPLAY_DEPTH;

/** Counts what arrives and lets others wait for it. */
class Arrivals {
  #count = 0;
  #waiting: (() => void)[] = [];

  add(): void {
    this.#count++;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  async reached(count: number): Promise<void> {
    while (this.#count < count) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
  }
}

describeEventPlaneContract({
  title: "memory",
  carriesLoad: true,
  createPlane: () => Promise.resolve(new MemoryEventPlane({ replayDepth })),
  createWorker: (plane, replica, snapshot) =>
    Promise.resolve({
      publisher: (plane as MemoryEventPlane).publisher(replica, { snapshot }),
      address: undefined,
      listenedTo: () => Promise.resolve(),
      close: () => Promise.resolve(),
    }),
});

describeEventPlaneContract({
  title: "http",
  carriesLoad: true,
  createPlane: () => Promise.resolve(new HttpEventPlane({ replayDepth, reconnectMs: 1 })),
  createWorker: async (_, __, snapshot, incarnation, instead) => {
    const publisher = new HttpEventPublisher({ source: { snapshot }, incarnation, replayDepth });
    const streams = new Arrivals();
    const server = createServer((request, response) => {
      if (!publisher.handle(request, response)) response.writeHead(404).end();
      else if (request.url === "/events" || request.url?.startsWith("/events?")) {
        streams.add();
      }
    });
    await instead?.close();
    server.listen(Number(new URL(instead?.address?.url ?? "http://x:0").port), "127.0.0.1");
    await once(server, "listening");
    const worker: PublishingWorker = {
      publisher,
      address: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
      listenedTo: (count) => streams.reached(count),
      cutConnections: () => {
        server.closeAllConnections();
        return Promise.resolve();
      },
      close: async () => {
        if (!server.listening) return;
        const closed = once(server, "close");
        await publisher.close();
        server.close();
        server.closeAllConnections();
        await closed;
      },
    };
    return worker;
  },
});

describeEventPlaneContract({
  title: "zmq",
  carriesLoad: false,
  createPlane: () => ZmqEventPlane.load({ blockTokens: CONTRACT_BLOCK_TOKENS, replayDepth, answerMs: 2000 }),
  createWorker: async (_, __, ___, ____, instead) => {
    // A worker that takes another's place is reached through the other's proxy.
    const before = instead as (PublishingWorker & { publisher: ZmqEventPublisher }) | undefined;
    await before?.publisher.close();
    const endpoint = before?.publisher.endpoint ?? "tcp://127.0.0.1:*";
    const replayEndpoint = before?.publisher.replayEndpoint ?? "tcp://127.0.0.1:*";
    const options = { endpoint, replayEndpoint, blockTokens: CONTRACT_BLOCK_TOKENS, replayDepth };
    // ZMQ gives an address back on a thread of its own, some time after its socket has closed.
    const publisher = await vi.waitFor(() => ZmqEventPublisher.load(options), { timeout: 10_000, interval: 20 });
    const proxy = new CuttableProxy(Number(new URL(publisher.endpoint).port));
    const url = before?.address?.url ?? (await proxy.listen());
    return {
      publisher,
      address: { url, replayUrl: publisher.replayEndpoint },
      listenedTo: (count: number) => publisher.subscribed(count),
      cutConnections: () => {
        proxy.cut();
        return Promise.resolve();
      },
      close: async () => {
        await publisher.close();
        await proxy.close();
      },
    };
  },
});
