import type * as JetStream from "@nats-io/jetstream";
import { WarmpathError } from "../../core/errors.ts";
import type { FeedCapabilities } from "../../core/kv-index/types.ts";
import type { NatsLink } from "../nats/connection.ts";
import { eventSubjects } from "../nats/subjects.ts";
import { NatsSubscription } from "./nats/subscription.ts";
import type { Tally } from "./parts/heard-events.ts";
import type { EventAddress, EventListener, EventPlane, EventPlaneCounts, EventSubscription } from "./types.ts";

export interface NatsEventPlaneOptions {
  /** The connection; whoever made it closes it. */
  readonly link: NatsLink;
  /** Past events that JetStream keeps of each worker. */
  readonly replayDepth?: number;
  /** How long a worker or JetStream may take to answer. */
  readonly answerMs?: number;
}

const DEFAULT_REPLAY_DEPTH = 1024;
const DEFAULT_ANSWER_MS = 5000;

/**
 * Hears our own workers over NATS: events as plain messages, which are fast and may get lost; what was lost from JetStream,
 * which keeps the last ones of each worker; and the whole state from the worker itself.
 */
export class NatsEventPlane implements EventPlane {
  readonly capabilities: FeedCapabilities;
  readonly #options: NatsEventPlaneOptions;
  readonly #jetstream: typeof JetStream;
  readonly #tally: Tally = { events: 0, undecodable: 0, reconnects: 0 };
  readonly #subscriptions = new Set<NatsSubscription>();
  readonly #stopCounting: () => void;

  private constructor(jetstream: typeof JetStream, options: NatsEventPlaneOptions) {
    this.#jetstream = jetstream;
    this.#options = options;
    this.capabilities = { replayDepth: options.replayDepth ?? DEFAULT_REPLAY_DEPTH, snapshot: true };
    this.#stopCounting = options.link.watch({
      up: (_, isFirst) => {
        if (!isFirst) this.#tally.reconnects++;
      },
    });
  }

  /** Makes a plane; needs the optional packages of the NATS client. */
  static async load(options: NatsEventPlaneOptions): Promise<NatsEventPlane> {
    const jetstream = await import("@nats-io/jetstream").catch((cause: unknown) => {
      const advice = "the NATS event plane needs its client; npm install @nats-io/transport-node @nats-io/jetstream";
      throw new WarmpathError("WP_INVALID_INPUT", advice, { cause });
    });
    return new NatsEventPlane(jetstream, options);
  }

  get counts(): EventPlaneCounts {
    return { ...this.#tally, ignored: 0 };
  }

  /** A worker publishes under its own name; where the gateway has another for it, `topic` says which. */
  subscribe(replica: string, listener: EventListener, address?: EventAddress): EventSubscription {
    const { link, answerMs = DEFAULT_ANSWER_MS } = this.#options;
    const subscription: NatsSubscription = new NatsSubscription({
      closed: () => this.#subscriptions.delete(subscription),
      link,
      jetstream: this.#jetstream,
      listener,
      subjects: eventSubjects(link.prefix, address?.topic ?? replica),
      answerMs,
      tally: this.#tally,
    });
    this.#subscriptions.add(subscription);
    return subscription;
  }

  async close(): Promise<void> {
    this.#stopCounting();
    await Promise.all([...this.#subscriptions].map((subscription) => subscription.close()));
    this.#subscriptions.clear();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
