import type * as JetStream from "@nats-io/jetstream";
import type { NatsConnection, Subscription } from "@nats-io/transport-node";
import { WarmpathError } from "../../core/errors.ts";
import type { KvEvent } from "../../core/kv-index/types.ts";
import type { ReportedLoad } from "../../core/load/load-description.ts";
import { encodeKvEvent, encodeLoad, encodeSnapshot, encodeStreamHead } from "../../wire/kv-events/json-events.ts";
import type { NatsLink } from "../nats/connection.ts";
import { eventSubjects, type EventSubjects } from "../nats/subjects.ts";
import type { EventPublisher, EventSource } from "./types.ts";

export interface NatsEventPublisherOptions {
  /** The connection; whoever made it closes it. */
  readonly link: NatsLink;
  /** Name of the worker, as gateways know it. */
  readonly name: string;
  readonly source: EventSource;
  /** Names this life of the worker until an event names another. */
  readonly incarnation: string;
  /** Events of each worker that JetStream is to keep. */
  readonly replayDepth?: number;
  /** How often the worker says how far it is. */
  readonly heartbeatMs?: number;
  /** Asked for each event; true does not send it, as if the wire had lost it. For tests. */
  readonly loses?: () => boolean;
}

const DEFAULT_REPLAY_DEPTH = 1024;
const DEFAULT_HEARTBEAT_MS = 2000;
/** What is kept of a worker that has gone for good. */
const KEPT_MS = 3_600_000;

/**
 * Publishes a worker's events over NATS. While the server is away nothing is kept for it: the head that is told when it is back
 * shows what is missing, and the state is there for whoever asks.
 */
export class NatsEventPublisher implements EventPublisher {
  readonly #options: NatsEventPublisherOptions;
  readonly #jetstream: typeof JetStream;
  readonly #subjects: EventSubjects;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #stopWatching: () => void;
  readonly #asked: Subscription[] = [];
  /** Resolves once the server has been reached and has been asked to keep events. */
  readonly ready: Promise<void>;
  #isReady: () => void = () => undefined;
  #incarnation: string;
  #lastEventId = -1;

  private constructor(jetstream: typeof JetStream, options: NatsEventPublisherOptions) {
    this.#jetstream = jetstream;
    this.#options = options;
    this.#incarnation = options.incarnation;
    this.#subjects = eventSubjects(options.link.prefix, options.name);
    this.#heartbeat = setInterval(() => this.#tellHead(), options.heartbeatMs ?? DEFAULT_HEARTBEAT_MS);
    this.#heartbeat.unref();
    this.ready = new Promise((resolve) => (this.#isReady = resolve));
    this.#stopWatching = options.link.watch({ up: (connection, isFirst) => void this.#up(connection, isFirst) });
  }

  /** Makes a publisher; needs the optional packages of the NATS client. */
  static async load(options: NatsEventPublisherOptions): Promise<NatsEventPublisher> {
    const jetstream = await import("@nats-io/jetstream").catch((cause: unknown) => {
      const advice = "publishing over NATS needs its client; npm install @nats-io/transport-node @nats-io/jetstream";
      throw new WarmpathError("WP_INVALID_INPUT", advice, { cause });
    });
    return new NatsEventPublisher(jetstream, options);
  }

  publish(event: KvEvent): void {
    this.#incarnation = event.incarnation;
    this.#lastEventId = event.eventId;
    const { link, loses } = this.#options;
    if (loses?.() === true) return;
    const text = encodeKvEvent(event, Date.now());
    // What the server would not take is missed like any other that is lost, and the state is asked for.
    if (Buffer.byteLength(text) <= link.payloadBytes) link.connection?.publish(this.#subjects.events, text);
  }

  load(load: ReportedLoad): void {
    this.#options.link.connection?.publish(this.#subjects.load, encodeLoad(load));
  }

  close(): Promise<void> {
    clearInterval(this.#heartbeat);
    this.#stopWatching();
    if (this.#options.link.connection !== undefined) for (const asked of this.#asked) asked.unsubscribe();
    return Promise.resolve();
  }

  async #up(connection: NatsConnection, isFirst: boolean): Promise<void> {
    const { askHead, askSnapshot } = this.#subjects;
    if (isFirst) {
      this.#asked.push(
        connection.subscribe(askHead, { callback: (error, asked) => void (error ?? asked.respond(this.#head())) }),
        connection.subscribe(askSnapshot, {
          callback: (error, asked) => {
            if (error === null && asked.reply !== undefined) this.#sendSnapshot(connection, asked.reply);
          },
        }),
      );
    }
    // A server that was started anew has forgotten its stream, if that was in memory.
    await this.#ensureStream(connection);
    this.#tellHead();
    this.#isReady();
  }

  /** Without JetStream there is nothing to replay, and whoever misses something asks for the whole state. */
  async #ensureStream(connection: NatsConnection): Promise<void> {
    const { stream: name, allEvents } = this.#subjects;
    const { DiscardPolicy, StorageType, jetstreamManager } = this.#jetstream;
    const depth = this.#options.replayDepth ?? DEFAULT_REPLAY_DEPTH;
    try {
      const { streams } = await jetstreamManager(connection);
      await streams.add({
        name,
        subjects: [allEvents],
        storage: StorageType.Memory,
        discard: DiscardPolicy.Old,
        max_msgs_per_subject: depth,
        max_age: KEPT_MS * 1_000_000,
        // Acknowledgements would go to nobody: events are published as plain messages.
        no_ack: true,
      });
    } catch {
      // Another worker's depth, or no JetStream: both can be lived with.
    }
  }

  #tellHead(): void {
    this.#options.link.connection?.publish(this.#subjects.head, this.#head());
  }

  #head(): string {
    const lastEventId = this.#lastEventId;
    return encodeStreamHead({ incarnation: this.#incarnation, lastEventId, nextEventId: lastEventId + 1 });
  }

  #sendSnapshot(connection: NatsConnection, to: string): void {
    const { link, source } = this.#options;
    const bytes = new TextEncoder().encode(encodeSnapshot(source.snapshot()));
    const { partBytes } = link;
    for (let at = 0; at < bytes.length; at += partBytes) connection.publish(to, bytes.subarray(at, at + partBytes));
    connection.publish(to);
  }
}
