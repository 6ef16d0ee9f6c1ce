import { Agent } from "undici";
import { WarmpathError } from "../../core/errors.ts";
import type { FeedCapabilities } from "../../core/kv-index/types.ts";
import { EnginePoll, type Tally } from "./tensorrt/engine-poll.ts";
import { TensorRtSubscription } from "./tensorrt/subscription.ts";
import type { EventAddress, EventListener, EventPlane, EventPlaneCounts, EventSubscription } from "./types.ts";

export interface TensorRtEventPlaneOptions {
  readonly blockTokens: number;
  /** Pause between two questions. */
  readonly intervalMs?: number;
  /** How long an engine may take to answer; older ones wait for two seconds if they have nothing to tell. */
  readonly answerMs?: number;
}

/** How the address of such an engine begins, to tell it from one of our own workers. */
const SCHEME = /^trtllm\+(?=https?:\/\/)/;
const DEFAULT_INTERVAL_MS = 50;
const DEFAULT_ANSWER_MS = 10_000;

/**
 * Hears TensorRT-LLM engines by asking them for what has happened since they were last asked. An answer is given once: what is lost
 * on its way, or dropped by an engine whose buffer was full, is gone, and the gap in the numbers shows it. So each engine is asked
 * by this one plane alone, whoever listens.
 */
export class TensorRtEventPlane implements EventPlane {
  readonly capabilities: FeedCapabilities = { replayDepth: 0, snapshot: false };
  readonly #options: TensorRtEventPlaneOptions;
  readonly #tally: Tally = { events: 0, undecodable: 0, ignored: 0, reconnects: 0 };
  readonly #polls = new Map<string, EnginePoll>();
  readonly #agent: Agent;

  constructor(options: TensorRtEventPlaneOptions) {
    this.#options = options;
    const answerMs = options.answerMs ?? DEFAULT_ANSWER_MS;
    this.#agent = new Agent({ bodyTimeout: answerMs, headersTimeout: answerMs, connectTimeout: answerMs });
  }

  /** Whether an address is that of such an engine. */
  static isMeant(url: string): boolean {
    return SCHEME.test(url);
  }

  get counts(): EventPlaneCounts {
    return { ...this.#tally };
  }

  subscribe(replica: string, listener: EventListener, address?: EventAddress): EventSubscription {
    if (address === undefined) {
      throw new WarmpathError("WP_INVALID_INPUT", `${replica} has no URL to ask for its events`);
    }
    const poll = this.#pollOf(address.url.replace(SCHEME, "").replace(/\/+$/, ""));
    const { blockTokens } = this.#options;
    return new TensorRtSubscription({
      poll,
      listener,
      blockTokens,
      dpRank: address.dpRank ?? 0,
      tally: this.#tally,
    });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#polls.values()].map((poll) => poll.close()));
    this.#polls.clear();
    await this.#agent.destroy();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #pollOf(url: string): EnginePoll {
    let poll = this.#polls.get(url);
    if (poll === undefined) {
      const intervalMs = this.#options.intervalMs ?? DEFAULT_INTERVAL_MS;
      poll = new EnginePoll({ url, agent: this.#agent, intervalMs, tally: this.#tally });
      this.#polls.set(url, poll);
    }
    return poll;
  }
}
