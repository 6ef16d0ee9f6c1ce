import { setTimeout as pause } from "node:timers/promises";
import { type Agent, request } from "undici";
import { textWithin } from "../../../wire/body-text.ts";
import { EventStreamReader, type StreamEvent } from "../../../wire/kv-events/event-stream.ts";
import {
  decodeKvEvents,
  decodeLoad,
  decodeSnapshot,
  decodeStreamHead,
  decodeStreamedEvent,
} from "../../../wire/kv-events/json-events.ts";
import { HeardEvents, type Tally } from "../parts/heard-events.ts";
import { Latch } from "../parts/latch.ts";
import type { EventListener, EventSubscription } from "../types.ts";

export interface HttpSubscriptionOptions {
  /** Nobody listens any more. */
  readonly closed: () => void;
  readonly listener: EventListener;
  readonly url: string;
  readonly agent: Agent;
  readonly reconnectMs: number;
  readonly tally: Tally;
}

/** The state of ten million blocks; what never ends is none. */
const MOST_BYTES = 384 * 1024 * 1024;

/** One worker's event stream, taken up again where it was lost. */
export class HttpSubscription implements EventSubscription {
  readonly #options: HttpSubscriptionOptions;
  readonly #closing = new AbortController();
  readonly #reading: Promise<void>;
  readonly #connected = new Latch();
  readonly #events: HeardEvents;

  constructor(options: HttpSubscriptionOptions) {
    this.#options = options;
    this.#events = new HeardEvents(options.listener, options.tally);
    this.#reading = this.#read();
  }

  replay(fromEventId: number, toEventId: number): void {
    void this.#replay(fromEventId, toEventId);
  }

  resync(): void {
    // One that cannot be had is asked for again by whoever needs it.
    void this.#resync();
  }

  catchUp(): void {
    void this.#catchUp();
  }

  async close(): Promise<void> {
    this.#options.closed();
    this.#closing.abort();
    this.#connected.open();
    await this.#reading;
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  async #catchUp(): Promise<void> {
    // The stream first: what happens after the state was taken comes with it.
    await this.#connected.opened;
    await this.#resyncAtLast();
    if (!this.#isClosed) this.#options.listener.caughtUp();
  }

  async #resyncAtLast(): Promise<void> {
    while (!this.#isClosed && !(await this.#resync())) await this.#pause();
  }

  async #replay(fromEventId: number, toEventId: number): Promise<void> {
    const incarnation = encodeURIComponent(this.#events.incarnation ?? "");
    const answer = await this.#get(`/events/range?from=${fromEventId}&to=${toEventId}&incarnation=${incarnation}`);
    // Without an answer the feed asks again, and gives up by itself.
    if (answer === undefined || this.#isClosed) return;
    const events = answer.status === 200 ? decodeKvEvents(answer.text) : undefined;
    if (events === undefined) this.#options.listener.replayUnavailable();
    else for (const event of events) this.#events.deliver(event);
  }

  async #resync(): Promise<boolean> {
    const answer = await this.#get("/events/snapshot");
    const snapshot = answer?.status === 200 ? decodeSnapshot(answer.text) : undefined;
    if (snapshot === undefined || this.#isClosed) return false;
    this.#options.listener.snapshot(snapshot);
    return true;
  }

  async #get(path: string): Promise<{ status: number; text: string } | undefined> {
    const { url, agent } = this.#options;
    try {
      const { statusCode, body } = await request(url + path, { dispatcher: agent, signal: this.#closing.signal });
      const text = await textWithin(body, MOST_BYTES);
      return text === undefined ? undefined : { status: statusCode, text };
    } catch {
      return undefined;
    }
  }

  /** Reads the stream, and the next one when it ends, until closed. */
  async #read(): Promise<void> {
    while (!this.#isClosed) {
      await this.#readStream();
      await this.#pause();
      if (!this.#isClosed) this.#options.tally.reconnects++;
    }
  }

  async #readStream(): Promise<void> {
    const { url, agent } = this.#options;
    const incarnation = encodeURIComponent(this.#events.incarnation ?? "");
    const from =
      this.#events.incarnation === undefined ? "" : `?from=${this.#events.lastEventId + 1}&incarnation=${incarnation}`;
    try {
      const { statusCode, body } = await request(`${url}/events${from}`, {
        dispatcher: agent,
        signal: this.#closing.signal,
      });
      if (statusCode !== 200) {
        await body.dump();
        return;
      }
      const reader = new EventStreamReader();
      for await (const chunk of body) for (const event of reader.push(chunk as Uint8Array)) this.#streamEvent(event);
    } catch {
      // The connection is lost, or there was none: the next attempt will tell.
    }
  }

  #streamEvent({ type, data }: StreamEvent): void {
    if (this.#isClosed) return;
    if (type === "kv") this.#events.decoded(decodeStreamedEvent(data), (streamed) => this.#events.hear(streamed));
    else if (type === "load") this.#events.decoded(decodeLoad(data), (load) => this.#options.listener.load(load));
    else if (type === "head") this.#events.decoded(decodeStreamHead(data), (head) => this.#begin(head));
  }

  /**
   * A stream has begun. Where it does not go on from where the last one ended, nobody might ever notice what is missing, or
   * that the worker is another, until its next event: so the state is fetched unasked.
   */
  #begin(head: { readonly incarnation: string; readonly nextEventId: number }): void {
    const isFirst = this.#events.incarnation === undefined;
    const goesOn = head.incarnation === this.#events.incarnation && head.nextEventId === this.#events.lastEventId + 1;
    this.#events.incarnation = head.incarnation;
    this.#events.lastEventId = head.nextEventId - 1;
    if (isFirst) this.#connected.open();
    else if (!goesOn) void this.#resyncAtLast();
  }

  async #pause(): Promise<void> {
    await pause(this.#options.reconnectMs, undefined, { ref: false, signal: this.#closing.signal }).catch(
      () => undefined,
    );
  }
}
