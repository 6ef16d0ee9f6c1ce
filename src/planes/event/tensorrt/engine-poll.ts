import { setTimeout as pause } from "node:timers/promises";
import { type Agent, request } from "undici";
import { textWithin } from "../../../wire/body-text.ts";

/** Far more than an engine's buffer of events; what never ends is none. */
const MOST_BYTES = 256 * 1024 * 1024;

/** What all engines of a plane have told. */
export interface Tally {
  events: number;
  undecodable: number;
  ignored: number;
  reconnects: number;
}

export interface EnginePollOptions {
  readonly url: string;
  readonly agent: Agent;
  readonly intervalMs: number;
  readonly tally: Tally;
}

/** Takes the answers of one engine, in order. */
export interface PollListener {
  answered(text: string): void;
}

/** Asks one engine for its events for as long as somebody listens. */
export class EnginePoll {
  readonly #options: EnginePollOptions;
  readonly #listeners = new Set<PollListener>();
  readonly #closing = new AbortController();
  #asking: Promise<void> | undefined;
  #isAway = false;

  constructor(options: EnginePollOptions) {
    this.#options = options;
  }

  listen(listener: PollListener): () => void {
    this.#listeners.add(listener);
    this.#asking ??= this.#ask();
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    this.#closing.abort();
    await this.#asking;
  }

  async #ask(): Promise<void> {
    const { intervalMs } = this.#options;
    const { signal } = this.#closing;
    while (this.#listeners.size > 0 && !signal.aborted) {
      const text = await this.#askOnce();
      if (text !== undefined) for (const listener of this.#listeners) listener.answered(text);
      await pause(intervalMs, undefined, { ref: false, signal }).catch(() => undefined);
    }
    this.#asking = undefined;
  }

  async #askOnce(): Promise<string | undefined> {
    const { url, agent, tally } = this.#options;
    try {
      const { statusCode, body } = await request(`${url}/kv_cache_events`, {
        method: "POST",
        dispatcher: agent,
        signal: this.#closing.signal,
      });
      const text = await textWithin(body, MOST_BYTES);
      if (this.#isAway) tally.reconnects++;
      this.#isAway = false;
      return statusCode === 200 ? text : undefined;
    } catch {
      this.#isAway = true;
      return undefined;
    }
  }
}
