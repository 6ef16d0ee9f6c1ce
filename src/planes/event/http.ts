import { Agent } from "undici";
import { WarmpathError } from "../../core/errors.ts";
import type { FeedCapabilities } from "../../core/kv-index/types.ts";
import { HttpSubscription } from "./http/subscription.ts";
import type { Tally } from "./parts/heard-events.ts";
import type { EventAddress, EventListener, EventPlane, EventPlaneCounts, EventSubscription } from "./types.ts";

export interface HttpEventPlaneOptions {
  /** Pause before a lost connection is tried again. */
  readonly reconnectMs?: number;
  /** A stream that is quiet for so long is taken for dead; publishers show that they are alive more often. */
  readonly quietMs?: number;
  /** Past events that publishers keep. */
  readonly replayDepth?: number;
}

const DEFAULT_RECONNECT_MS = 500;
const DEFAULT_QUIET_MS = 20_000;
const DEFAULT_REPLAY_DEPTH = 1024;

/** Hears our own workers over HTTP: server-sent events from their own servers, and requests for what was missed. */
export class HttpEventPlane implements EventPlane {
  readonly capabilities: FeedCapabilities;
  readonly #tally: Tally = { events: 0, undecodable: 0, reconnects: 0 };
  readonly #agent: Agent;
  readonly #reconnectMs: number;
  readonly #subscriptions = new Set<HttpSubscription>();

  constructor(options: HttpEventPlaneOptions = {}) {
    this.capabilities = { replayDepth: options.replayDepth ?? DEFAULT_REPLAY_DEPTH, snapshot: true };
    this.#reconnectMs = options.reconnectMs ?? DEFAULT_RECONNECT_MS;
    const quietMs = options.quietMs ?? DEFAULT_QUIET_MS;
    this.#agent = new Agent({ bodyTimeout: quietMs, headersTimeout: quietMs, connectTimeout: quietMs });
  }

  get counts(): EventPlaneCounts {
    return { ...this.#tally, ignored: 0 };
  }

  subscribe(replica: string, listener: EventListener, address?: EventAddress): EventSubscription {
    if (address === undefined) {
      throw new WarmpathError("WP_INVALID_INPUT", `${replica} has no URL to hear its events from`);
    }
    const subscription: HttpSubscription = new HttpSubscription({
      closed: () => this.#subscriptions.delete(subscription),
      listener,
      url: address.url.replace(/\/+$/, ""),
      agent: this.#agent,
      reconnectMs: this.#reconnectMs,
      tally: this.#tally,
    });
    this.#subscriptions.add(subscription);
    return subscription;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#subscriptions].map((subscription) => subscription.close()));
    this.#subscriptions.clear();
    await this.#agent.destroy();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
