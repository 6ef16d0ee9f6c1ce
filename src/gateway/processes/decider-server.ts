import { once } from "node:events";
import { type Server, type Socket, createServer } from "node:net";
import { Gauge } from "prom-client";
import { ACCOUNTS } from "../../core/accounts.ts";
import type { DecidedRequest, Decider } from "../decider.ts";
import type { LocalDecider } from "../local-decider.ts";
import { FRAME, FrameReader, FrameWriter } from "./frames.ts";
import { type FleetNews, type StandInReport, decodeEnd, decodeOffer, decodeRefusal } from "./messages.ts";

/** How often proxies are told of the fleet; several times as often as they take silence for an end. */
const NEWS_MS = 250;

/** Lends one decider to several proxies over a local socket. */
export class DeciderServer {
  readonly #decider: LocalDecider;
  readonly #front: Decider;
  readonly #server: Server;
  readonly #connections = new Set<ProxyConnection>();
  readonly #news: NodeJS.Timeout;
  readonly #stopListening: () => void;
  /** What each proxy has done on its own since it was started, those that have gone included; one may come several times. */
  readonly #standIns = new Map<string, Readonly<Record<string, number>>>();

  /** Proxies are answered by `front`, where somebody stands in front of the decider. */
  constructor(decider: LocalDecider, front: Decider = decider) {
    this.#decider = decider;
    this.#front = front;
    this.#server = createServer((socket) => this.#connected(socket));
    this.#news = setInterval(() => this.#tellNews(), NEWS_MS);
    this.#stopListening = decider.directory.onChange(() => this.#tellNews());
    this.#registerStandInGauge();
  }

  async listen(path: string): Promise<void> {
    // Not shared where processes share their ports: this socket is this decider's alone.
    this.#server.listen({ path, exclusive: true });
    await once(this.#server, "listening");
  }

  /** Takes no more proxies, and resolves when the last one has left. */
  async unused(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    await closed;
    clearInterval(this.#news);
    this.#stopListening();
  }

  async close(): Promise<void> {
    clearInterval(this.#news);
    this.#stopListening();
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const connection of this.#connections) connection.close();
    await closed;
  }

  #connected(socket: Socket): void {
    const connection: ProxyConnection = new ProxyConnection(this.#front, socket, {
      stoodIn: ({ proxy, accounting }) => this.#standIns.set(proxy, { ...accounting }),
      closed: () => this.#connections.delete(connection),
    });
    this.#connections.add(connection);
    connection.tellNews(this.#fleetNews());
  }

  #tellNews(): void {
    const news = this.#fleetNews();
    for (const connection of this.#connections) connection.tellNews(news);
  }

  #fleetNews(): FleetNews {
    const { fleet, router } = this.#decider;
    const workers = fleet.workers
      .filter(({ dpRank }) => dpRank === 0)
      .map(({ worker: { name, url, dpRanks = 1 }, replica }) => ({
        name,
        url,
        dpRanks,
        isReady: router.fleet.state(replica) === "ready",
      }));
    const decider = this.#decider;
    return {
      workers,
      models: decider.models(),
      adapters: decider.adapters(),
      readiness: decider.readiness(),
    };
  }

  #registerStandInGauge(): void {
    const gauge: Gauge = new Gauge({
      name: "warmpath_stand_in_requests",
      help: "Requests that proxies routed by power-of-two while the decider was away, by account; offered is their sum.",
      labelNames: ["account"],
      registers: [this.#decider.metrics.registry],
      collect: () => {
        for (const account of ["offered", ...ACCOUNTS]) {
          let count = 0;
          for (const standIn of this.#standIns.values()) count += standIn[account] ?? 0;
          gauge.set({ account }, count);
        }
      },
    });
  }
}

/** Told what a connection is to others than the decider. */
interface ProxyListener {
  /** What the proxy did on its own while no decider was there. */
  stoodIn(report: StandInReport): void;
  closed(): void;
}

/** One proxy, as the decider sees it. */
class ProxyConnection {
  readonly #decider: Decider;
  readonly #socket: Socket;
  readonly #listener: ProxyListener;
  readonly #writer = new FrameWriter();
  readonly #ids = new Map<number, string>();
  #isFlushing = false;

  constructor(decider: Decider, socket: Socket, listener: ProxyListener) {
    this.#decider = decider;
    this.#socket = socket;
    this.#listener = listener;
    const reader = new FrameReader((kind, slot, payload) => this.#read(kind, slot, payload));
    socket.on("data", (chunk) => {
      try {
        reader.push(chunk);
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#lost();
      listener.closed();
    });
  }

  tellNews(news: FleetNews): void {
    this.#writer.addJson(FRAME.fleet, 0, news);
    this.#flush();
  }

  close(): void {
    this.#socket.end();
  }

  #read(kind: number, slot: number, payload: Buffer): void {
    const decider = this.#decider;
    const id = this.#ids.get(slot);
    switch (kind) {
      case FRAME.offer: {
        const request = decodeOffer(payload);
        this.#ids.set(slot, request.id);
        decider.offer(request, this.#decided(slot));
        break;
      }
      case FRAME.sent:
        if (id !== undefined) decider.sent(id);
        break;
      case FRAME.firstToken:
        if (id !== undefined) decider.firstToken(id);
        break;
      case FRAME.grew:
        if (id !== undefined) decider.grew(id, payload.readUInt32LE(0));
        break;
      case FRAME.ended:
        if (id !== undefined) decider.ended(id, decodeEnd(payload));
        break;
      case FRAME.refused:
        decider.refused(...decodeRefusal(payload));
        break;
      case FRAME.invalid:
        decider.invalid(payload.toString());
        break;
      case FRAME.standIn:
        this.#listener.stoodIn(JSON.parse(payload.toString()) as StandInReport);
        break;
      case FRAME.metrics:
        void this.#tellMetrics(slot);
        break;
    }
  }

  async #tellMetrics(slot: number): Promise<void> {
    const text = await this.#decider.metricsText();
    this.#writer.add(FRAME.metricsText, slot, Buffer.from(text));
    this.#flush();
  }

  #decided(slot: number): DecidedRequest {
    return {
      place: (placement) => {
        this.#writer.addJson(FRAME.place, slot, placement);
        this.#flush();
      },
      shed: (reason) => {
        this.#ids.delete(slot);
        this.#writer.addJson(FRAME.shed, slot, reason);
        this.#flush();
      },
      over: (notRetried) => {
        this.#ids.delete(slot);
        this.#writer.add(FRAME.over, slot, Buffer.from(notRetried ?? ""));
        this.#flush();
      },
    };
  }

  /** One write for all that is decided in one go. */
  #flush(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    queueMicrotask(() => {
      this.#isFlushing = false;
      if (!this.#socket.destroyed && !this.#writer.isEmpty) this.#socket.write(this.#writer.take());
    });
  }

  /** The proxy is gone, and its clients with it. */
  #lost(): void {
    for (const id of this.#ids.values()) {
      this.#decider.ended(id, { outcome: "failed", mayRetry: false, fault: "proxy-lost" });
    }
    this.#ids.clear();
  }
}
