import { setTimeout as pause } from "node:timers/promises";
import type * as JetStream from "@nats-io/jetstream";
import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import type { KvEvent, ReplicaSnapshot } from "../../../core/kv-index/types.ts";
import {
  decodeLoad,
  decodeSnapshot,
  decodeStreamHead,
  decodeStreamedEvent,
  type StreamHead,
} from "../../../wire/kv-events/json-events.ts";
import type { NatsLink } from "../../nats/connection.ts";
import type { EventSubjects } from "../../nats/subjects.ts";
import { HeardEvents, type Tally } from "../parts/heard-events.ts";
import { Latch } from "../parts/latch.ts";
import type { EventListener, EventSubscription } from "../types.ts";
import { keptEvents } from "./kept-events.ts";

export interface NatsSubscriptionOptions {
  /** Nobody listens any more. */
  readonly closed: () => void;
  readonly link: NatsLink;
  readonly jetstream: typeof JetStream;
  readonly listener: EventListener;
  readonly subjects: EventSubjects;
  readonly answerMs: number;
  readonly tally: Tally;
}

/**
 * One worker's events over NATS. Plain messages get lost without a word: when the connection was down, when the worker's was,
 * when the last ones of a burst are dropped. So workers say every so often how far they are, and are asked after each
 * reconnection; what is missing then is fetched unasked.
 */
export class NatsSubscription implements EventSubscription {
  readonly #options: NatsSubscriptionOptions;
  readonly #closing = new AbortController();
  readonly #subscribed = new Latch();
  readonly #stopWatching: () => void;
  #subscription: Subscription | undefined;
  readonly #events: HeardEvents;
  #isMending = false;

  constructor(options: NatsSubscriptionOptions) {
    this.#options = options;
    this.#events = new HeardEvents(options.listener, options.tally);
    this.#stopWatching = options.link.watch({ up: (connection, isFirst) => this.#up(connection, isFirst) });
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

  close(): Promise<void> {
    this.#options.closed();
    this.#closing.abort();
    this.#stopWatching();
    this.#subscribed.open();
    if (this.#options.link.connection !== undefined) this.#subscription?.unsubscribe();
    return Promise.resolve();
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  #up(connection: NatsConnection, isFirst: boolean): void {
    if (!isFirst) {
      void this.#askHead();
      return;
    }
    const { told } = this.#options.subjects;
    this.#subscription = connection.subscribe(told, { callback: (error, message) => this.#heard(error, message) });
    // Only what the server has confirmed is heard for certain.
    void connection.flush().then(
      () => this.#subscribed.open(),
      () => this.#subscribed.open(),
    );
  }

  async #catchUp(): Promise<void> {
    // The subscription first: what happens after the state was taken comes with it.
    await this.#subscribed.opened;
    await this.#resyncAtLast();
    if (!this.#isClosed) this.#options.listener.caughtUp();
  }

  #heard(error: Error | null, message: Msg): void {
    if (this.#isClosed || error !== null) return;
    const { subjects, listener } = this.#options;
    const text = message.string();
    if (message.subject === subjects.events)
      this.#events.decoded(decodeStreamedEvent(text), (streamed) => this.#events.hear(streamed));
    else if (message.subject === subjects.load) this.#events.decoded(decodeLoad(text), (load) => listener.load(load));
    else if (message.subject === subjects.head)
      this.#events.decoded(decodeStreamHead(text), (head) => this.#headTold(head));
  }

  async #askHead(): Promise<void> {
    const { link, subjects, answerMs } = this.#options;
    try {
      const answer = await link.connection?.request(subjects.askHead, "", { timeout: answerMs });
      const head = answer === undefined ? undefined : decodeStreamHead(answer.string());
      if (head !== undefined && !this.#isClosed) this.#headTold(head);
    } catch {
      // A worker that is not there yet says how far it is when it comes.
    }
  }

  /** A worker says how far it is. Before its state is known there is nothing to compare, and nothing to mend. */
  #headTold(head: StreamHead): void {
    const isSame = head.incarnation === this.#events.incarnation;
    if (
      this.#events.incarnation === undefined ||
      this.#isMending ||
      (isSame && head.lastEventId <= this.#events.lastEventId)
    )
      return;
    this.#isMending = true;
    void this.#mend(head, isSame).finally(() => (this.#isMending = false));
  }

  async #mend({ lastEventId }: StreamHead, isSame: boolean): Promise<void> {
    const events = isSame ? await this.#kept(this.#events.lastEventId + 1, lastEventId) : undefined;
    if (this.#isClosed) return;
    if (events === undefined) await this.#resyncAtLast();
    else for (const event of events) this.#events.deliver(event);
  }

  async #replay(fromEventId: number, toEventId: number): Promise<void> {
    const events = await this.#kept(fromEventId, toEventId);
    if (this.#isClosed) return;
    if (events === undefined) this.#options.listener.replayUnavailable();
    else for (const event of events) this.#events.deliver(event);
  }

  async #kept(fromEventId: number, toEventId: number): Promise<KvEvent[] | undefined> {
    const { link, jetstream, subjects, answerMs } = this.#options;
    const incarnation = this.#events.incarnation;
    const { connection } = link;
    if (connection === undefined || incarnation === undefined) return undefined;
    const range = { incarnation, fromEventId, toEventId };
    return await keptEvents({ jetstream, connection, subjects, answerMs }, range);
  }

  async #resyncAtLast(): Promise<void> {
    while (!this.#isClosed && !(await this.#resync())) {
      await pause(this.#options.answerMs / 10, undefined, { ref: false, signal: this.#closing.signal }).catch(
        () => undefined,
      );
    }
  }

  async #resync(): Promise<boolean> {
    const snapshot = await this.#askSnapshot();
    if (snapshot === undefined || this.#isClosed) return false;
    const isSame = snapshot.incarnation === this.#events.incarnation;
    this.#events.lastEventId = isSame ? Math.max(this.#events.lastEventId, snapshot.lastEventId) : snapshot.lastEventId;
    this.#events.incarnation = snapshot.incarnation;
    this.#options.listener.snapshot(snapshot);
    return true;
  }

  /** A state may be larger than a message: it comes in parts, and an empty one ends it. */
  async #askSnapshot(): Promise<ReplicaSnapshot | undefined> {
    const { link, subjects, answerMs } = this.#options;
    const decoder = new TextDecoder();
    let text = "";
    let isWhole = false;
    try {
      const parts = await link.connection?.requestMany(subjects.askSnapshot, "", {
        strategy: "sentinel",
        maxWait: answerMs,
      });
      if (parts === undefined) return undefined;
      for await (const part of parts) {
        isWhole = part.data.length === 0;
        text += decoder.decode(part.data, { stream: true });
      }
    } catch {
      return undefined;
    }
    return isWhole ? decodeSnapshot(text) : undefined;
  }
}
