import type * as Zmq from "zeromq";
import { WarmpathError } from "../../core/errors.ts";
import type { KvEvent } from "../../core/kv-index/types.ts";
import { encodeEngineBatch, type StoredContent } from "../../wire/kv-events/engine-encoder.ts";
import { PastEvents } from "./parts/past-events.ts";
import { END_OF_REPLAY, sequenceFrame, sequenceOf } from "./parts/zmq-frames.ts";
import type { EventPublisher } from "./types.ts";

export interface ZmqEventPublisherOptions {
  /** Where to publish, for example `tcp://127.0.0.1:5557`; port `*` takes any free one. */
  readonly endpoint: string;
  /** Where to answer those who missed something. */
  readonly replayEndpoint?: string | undefined;
  readonly blockTokens: number;
  readonly dpRank?: number;
  readonly topic?: string;
  readonly replayDepth?: number;
  /** Wall time, for the batches' timestamps. */
  readonly nowMs?: () => number;
  /** Asked for each event; true keeps it for replay and does not send it, as if the wire had lost it. For tests. */
  readonly loses?: () => boolean;
}

interface SentMessage {
  readonly incarnation: string;
  readonly eventId: number;
  readonly payload: Uint8Array;
}

/** `buffer_steps` of vLLM where nothing else is configured. */
const DEFAULT_REPLAY_DEPTH = 10_000;

/**
 * Publishes a worker's events as vLLM does: each event is a batch under its own number, on a socket for subscribers and on
 * one that sends again what they missed. Load is not told here; vLLM's is scraped.
 */
export class ZmqEventPublisher implements EventPublisher {
  readonly #options: ZmqEventPublisherOptions;
  readonly #socket: Zmq.XPublisher;
  readonly #replaySocket: Zmq.Router | undefined;
  readonly #past: PastEvents<SentMessage>;
  readonly #topic: Buffer;
  readonly #tasks: Promise<void>[] = [];
  readonly #waitingForSubscriber: (() => void)[] = [];
  /** A socket takes one message at a time; these wait. */
  readonly #outbox: SentMessage[] = [];
  #sending: Promise<void> | undefined;
  #endpoint: string;
  #replayEndpoint: string | undefined;
  #subscribers = 0;
  #isClosed = false;

  private constructor(zmq: typeof Zmq, options: ZmqEventPublisherOptions) {
    this.#options = options;
    this.#endpoint = options.endpoint;
    this.#past = new PastEvents(options.replayDepth ?? DEFAULT_REPLAY_DEPTH);
    this.#topic = Buffer.from(options.topic ?? "");
    // On the wire the same as a PUB socket; this one can tell when somebody subscribes.
    this.#socket = new zmq.XPublisher({ linger: 0, sendHighWaterMark: 100_000, verbosity: "allSubs" });
    this.#replaySocket = options.replayEndpoint === undefined ? undefined : new zmq.Router({ linger: 0 });
  }

  /** Binds the sockets; needs the optional package `zeromq`. */
  static async load(options: ZmqEventPublisherOptions): Promise<ZmqEventPublisher> {
    const zmq = await import("zeromq").catch((cause: unknown) => {
      const advice = "publishing over ZMQ needs the package zeromq; npm install zeromq";
      throw new WarmpathError("WP_INVALID_INPUT", advice, { cause });
    });
    const publisher = new ZmqEventPublisher(zmq, options);
    try {
      await publisher.#start();
    } catch (error) {
      await publisher.close();
      throw error;
    }
    return publisher;
  }

  /** Where it publishes, with the port it got. */
  get endpoint(): string {
    return this.#endpoint;
  }

  /** Where it sends events again, with the port it got. */
  get replayEndpoint(): string | undefined {
    return this.#replayEndpoint;
  }

  publish(event: KvEvent, content?: StoredContent): void {
    const { blockTokens, dpRank = 0, nowMs = Date.now } = this.#options;
    if (event.kind === "stored" && content === undefined) {
      throw new WarmpathError("WP_INVALID_STATE", "a stored event needs its tokens to be published over ZMQ");
    }
    if (event.more !== undefined) {
      throw new WarmpathError("WP_INVALID_STATE", "events are published one by one over ZMQ");
    }
    const head = { timestampSeconds: nowMs() / 1000, dpRank, blockTokens };
    const payload = encodeEngineBatch(head, [{ change: event, content }]);
    const { incarnation, eventId } = event;
    const message = { incarnation, eventId, payload };
    this.#past.add(message);
    if (this.#options.loses?.() === true) return;
    this.#outbox.push(message);
    this.#sending ??= this.#sendAll();
  }

  load(): void {}

  /** Resolves when so many subscriptions have come: what is published before is not heard by them. */
  async subscribed(count: number): Promise<void> {
    while (this.#subscribers < count) {
      await new Promise<void>((resolve) => {
        this.#waitingForSubscriber.push(resolve);
      });
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    await this.#sending;
    this.#isClosed = true;
    this.#socket.close();
    this.#replaySocket?.close();
    await Promise.all(this.#tasks);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #start(): Promise<void> {
    const { endpoint, replayEndpoint } = this.#options;
    await this.#socket.bind(endpoint);
    this.#endpoint = this.#socket.lastEndpoint ?? endpoint;
    this.#tasks.push(this.#countSubscribers());
    if (this.#replaySocket === undefined || replayEndpoint === undefined) return;
    await this.#replaySocket.bind(replayEndpoint);
    this.#replayEndpoint = this.#replaySocket.lastEndpoint ?? replayEndpoint;
    this.#tasks.push(this.#answerReplays(this.#replaySocket));
  }

  async #sendAll(): Promise<void> {
    for (let next = this.#outbox.shift(); next !== undefined; next = this.#outbox.shift()) {
      await this.#socket.send([this.#topic, sequenceFrame(next.eventId), next.payload]);
    }
    this.#sending = undefined;
  }

  async #countSubscribers(): Promise<void> {
    for await (const [frame] of this.#socket) {
      if (frame[0] === 1) this.#subscribers++;
      for (const resolve of this.#waitingForSubscriber.splice(0)) resolve();
    }
  }

  async #answerReplays(socket: Zmq.Router): Promise<void> {
    for await (const [client, , start] of socket) {
      const first = Math.max(sequenceOf(start) ?? Infinity, this.#past.firstEventId ?? 0);
      const kept = this.#past.range(first, this.#past.last?.eventId ?? -1) ?? [];
      for (const { eventId, payload } of kept) await this.#reply(socket, [client, "", sequenceFrame(eventId), payload]);
      await this.#reply(socket, [client, "", END_OF_REPLAY, ""]);
    }
  }

  async #reply(socket: Zmq.Router, frames: (Buffer | Uint8Array | string)[]): Promise<void> {
    if (!this.#isClosed) await socket.send(frames);
  }
}
