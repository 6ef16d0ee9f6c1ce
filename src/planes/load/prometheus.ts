import { setTimeout as pause } from "node:timers/promises";
import { Agent, request } from "undici";
import { textWithin } from "../../wire/body-text.ts";
import { engineLoadOf } from "../../wire/prometheus-text.ts";
import type { LoadListener, LoadPlane, LoadWatch } from "./types.ts";

export interface PrometheusLoadOptions {
  readonly intervalMs: number;
  /** An answer that takes longer is given up. */
  readonly answerMs?: number;
}

const DEFAULT_ANSWER_MS = 2000;
/** Engines have some hundred kilobytes of metrics; what never ends is none. */
const MOST_BYTES = 16 * 1024 * 1024;

/** Reads vLLM's and SGLang's load from their `/metrics`. */
export class PrometheusLoad implements LoadPlane {
  readonly #intervalMs: number;
  readonly #agent: Agent;
  readonly #watches = new Set<LoadWatch>();

  constructor({ intervalMs, answerMs = DEFAULT_ANSWER_MS }: PrometheusLoadOptions) {
    this.#intervalMs = intervalMs;
    this.#agent = new Agent({ connectTimeout: answerMs, headersTimeout: answerMs, bodyTimeout: answerMs });
  }

  watch(url: string, listener: LoadListener, dpRank?: number): LoadWatch {
    const closing = new AbortController();
    const scraping = this.#scrape(`${url.replace(/\/+$/, "")}/metrics`, listener, dpRank, closing.signal);
    const watch = {
      close: async () => {
        closing.abort();
        this.#watches.delete(watch);
        await scraping;
      },
    };
    this.#watches.add(watch);
    return watch;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#watches].map((watch) => watch.close()));
    await this.#agent.destroy();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #scrape(url: string, listener: LoadListener, dpRank: number | undefined, signal: AbortSignal): Promise<void> {
    let isAnswering = true;
    while (!signal.aborted) {
      const problem = await this.#ask(url, listener, dpRank, signal);
      if (problem !== undefined && isAnswering && !signal.aborted) listener.problem?.(`${url}: ${problem}`);
      isAnswering = problem === undefined;
      await pause(this.#intervalMs, undefined, { ref: false, signal }).catch(() => undefined);
    }
  }

  /** Asks once; what went wrong, if anything did. */
  async #ask(
    url: string,
    listener: LoadListener,
    dpRank: number | undefined,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    try {
      const { statusCode, body } = await request(url, { dispatcher: this.#agent, signal });
      const text = await textWithin(body, MOST_BYTES);
      if (text === undefined) return `answered with more than ${MOST_BYTES} bytes`;
      if (statusCode !== 200) return `answered with ${statusCode}`;
      const load = engineLoadOf(text, dpRank);
      if (load === undefined) return "no metrics of an engine that is known";
      if (!signal.aborted) listener.load(load);
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  }
}
