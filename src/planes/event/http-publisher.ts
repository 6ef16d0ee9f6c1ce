import type { IncomingMessage, ServerResponse } from "node:http";
import type { KvEvent } from "../../core/kv-index/types.ts";
import type { ReportedLoad } from "../../core/load/load-description.ts";
import { STREAM_HEARTBEAT, streamEvent } from "../../wire/kv-events/event-stream.ts";
import {
  encodeKvEvent,
  encodeKvEvents,
  encodeLoad,
  encodeSnapshot,
  encodeStreamHead,
} from "../../wire/kv-events/json-events.ts";
import { splitTarget } from "../../wire/request-target.ts";
import type { HttpMount } from "../http-mount/types.ts";
import { PastEvents } from "./parts/past-events.ts";
import type { EventPublisher, EventSource } from "./types.ts";

export interface HttpEventPublisherOptions {
  readonly source: EventSource;
  /** Names this life of the worker until an event names another. */
  readonly incarnation: string;
  readonly replayDepth?: number;
  /** How often a quiet stream shows that it is alive. */
  readonly heartbeatMs?: number;
  /** Asked for each event; true keeps it for replay and does not send it, as if the wire had lost it. For tests. */
  readonly loses?: () => boolean;
}

const DEFAULT_REPLAY_DEPTH = 1024;
const DEFAULT_HEARTBEAT_MS = 5000;
/** A subscriber that is this far behind is cut off: it comes back and asks for what it missed. */
const MAX_BUFFERED_BYTES = 8 * 1024 * 1024;

/**
 * Publishes a worker's events on its own HTTP server: `GET /events` streams them, from an id on if one is given;
 * `GET /events/range` sends some again; `GET /events/snapshot` sends the whole state.
 */
export class HttpEventPublisher implements EventPublisher, HttpMount {
  readonly #source: EventSource;
  readonly #past: PastEvents;
  readonly #streams = new Set<ServerResponse>();
  readonly #heartbeat: NodeJS.Timeout;
  readonly #loses: () => boolean;
  #incarnation: string;
  #lastEventId = -1;
  #load: ReportedLoad | undefined;

  constructor(options: HttpEventPublisherOptions) {
    this.#source = options.source;
    this.#incarnation = options.incarnation;
    this.#loses = options.loses ?? ((): boolean => false);
    this.#past = new PastEvents(options.replayDepth ?? DEFAULT_REPLAY_DEPTH);
    this.#heartbeat = setInterval(() => this.#send(STREAM_HEARTBEAT), options.heartbeatMs ?? DEFAULT_HEARTBEAT_MS);
    this.#heartbeat.unref();
  }

  publish(event: KvEvent): void {
    this.#past.add(event);
    this.#incarnation = event.incarnation;
    this.#lastEventId = event.eventId;
    if (this.#streams.size > 0 && !this.#loses()) this.#send(streamEvent("kv", encodeKvEvent(event, Date.now())));
  }

  load(load: ReportedLoad): void {
    this.#load = load;
    this.#send(streamEvent("load", encodeLoad(load)));
  }

  handle(request: IncomingMessage, response: ServerResponse): boolean {
    if (request.method !== "GET") return false;
    const [path, query] = splitTarget(request.url);
    if (path === "/events") this.#stream(query, response);
    else if (path === "/events/range") this.#range(query, response);
    else if (path === "/events/snapshot") respond(response, 200, encodeSnapshot(this.#source.snapshot()));
    else return false;
    return true;
  }

  /** Ends all streams. */
  close(): Promise<void> {
    clearInterval(this.#heartbeat);
    for (const stream of this.#streams) stream.end();
    this.#streams.clear();
    return Promise.resolve();
  }

  #stream(query: URLSearchParams, response: ServerResponse): void {
    const nextEventId = this.#firstFor(query);
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    const head = { incarnation: this.#incarnation, lastEventId: this.#lastEventId, nextEventId };
    response.write(streamEvent("head", encodeStreamHead(head)));
    for (const event of this.#past.range(nextEventId, this.#lastEventId) ?? []) {
      response.write(streamEvent("kv", encodeKvEvent(event)));
    }
    if (this.#load !== undefined) response.write(streamEvent("load", encodeLoad(this.#load)));
    this.#streams.add(response);
    response.on("close", () => this.#streams.delete(response));
  }

  /** The event to start with: the one asked for while it and all after it are kept, else the next one to come. */
  #firstFor(query: URLSearchParams): number {
    const from = idOf(query.get("from"));
    const isKept =
      from !== undefined &&
      query.get("incarnation") === this.#incarnation &&
      this.#past.range(from, this.#lastEventId) !== undefined;
    return isKept ? from : this.#lastEventId + 1;
  }

  #range(query: URLSearchParams, response: ServerResponse): void {
    const from = idOf(query.get("from"));
    const to = idOf(query.get("to"));
    if (from === undefined || to === undefined) {
      respond(response, 400, JSON.stringify({ error: "from and to must be ids of events" }));
      return;
    }
    const events = query.get("incarnation") === this.#incarnation ? this.#past.range(from, to) : undefined;
    if (events === undefined) respond(response, 410, JSON.stringify({ error: "these events are not kept" }));
    else respond(response, 200, encodeKvEvents(events));
  }

  #send(text: string): void {
    for (const stream of this.#streams) {
      if (!stream.write(text) && stream.writableLength > MAX_BUFFERED_BYTES) stream.destroy();
    }
  }
}

function idOf(text: string | null): number | undefined {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function respond(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { "content-type": "application/json" }).end(body);
}
