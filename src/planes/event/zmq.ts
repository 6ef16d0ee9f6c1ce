import type * as Zmq from "zeromq";
import { WarmpathError } from "../../core/errors.ts";
import type { FeedCapabilities } from "../../core/kv-index/types.ts";
import { endpointOfRank } from "./parts/zmq-frames.ts";
import { ZmqSubscription, type Tally } from "./zmq/subscription.ts";
import type { EventAddress, EventListener, EventPlane, EventPlaneCounts, EventSubscription } from "./types.ts";

export interface ZmqEventPlaneOptions {
  readonly blockTokens: number;
  /** Messages that engines keep; vLLM's and SGLang's `buffer_steps`. */
  readonly replayDepth?: number;
  /** How long the next part of a replay may take. */
  readonly answerMs?: number;
}

/** `buffer_steps` of vLLM and SGLang where nothing else is configured. */
const DEFAULT_REPLAY_DEPTH = 10_000;
const DEFAULT_ANSWER_MS = 1000;

/** Hears vLLM and SGLang engines over ZeroMQ, in their own wire format. */
export class ZmqEventPlane implements EventPlane {
  readonly capabilities: FeedCapabilities;
  readonly #zmq: typeof Zmq;
  readonly #options: ZmqEventPlaneOptions;
  readonly #tally: Tally = { events: 0, undecodable: 0, ignored: 0, reconnects: 0 };
  readonly #subscriptions = new Set<ZmqSubscription>();

  private constructor(zmq: typeof Zmq, options: ZmqEventPlaneOptions) {
    this.#zmq = zmq;
    this.#options = options;
    this.capabilities = { replayDepth: options.replayDepth ?? DEFAULT_REPLAY_DEPTH, snapshot: false };
  }

  /** Makes a plane; needs the optional package `zeromq`. */
  static async load(options: ZmqEventPlaneOptions): Promise<ZmqEventPlane> {
    try {
      return new ZmqEventPlane(await import("zeromq"), options);
    } catch (cause) {
      const advice = "the ZMQ event plane needs the package zeromq; npm install zeromq";
      throw new WarmpathError("WP_INVALID_INPUT", advice, { cause });
    }
  }

  get counts(): EventPlaneCounts {
    return { ...this.#tally };
  }

  subscribe(replica: string, listener: EventListener, address?: EventAddress): EventSubscription {
    if (address === undefined) {
      throw new WarmpathError("WP_INVALID_INPUT", `${replica} has no endpoint to hear its events from`);
    }
    const { url, replayUrl, topic = "", dpRank = 0 } = address;
    const subscription: ZmqSubscription = new ZmqSubscription({
      zmq: this.#zmq,
      closed: () => this.#subscriptions.delete(subscription),
      listener,
      endpoint: endpointOfRank(url, dpRank),
      replayUrl,
      dpRank,
      topic,
      blockTokens: this.#options.blockTokens,
      answerMs: this.#options.answerMs ?? DEFAULT_ANSWER_MS,
      tally: this.#tally,
    });
    this.#subscriptions.add(subscription);
    return subscription;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#subscriptions].map((subscription) => subscription.close()));
    this.#subscriptions.clear();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
