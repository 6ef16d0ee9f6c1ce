import type { Rng } from "../../src/core/rng.ts";
import { words } from "../support/running-worker.ts";

/** How the client itself saw its requests end. */
export interface ClientCounts {
  sent: number;
  completed: number;
  /** Refused with a status, by whoever refused. */
  refused: number;
  /** Streams that ended with an error in them, or without an end mark. */
  broken: number;
}

const TOPICS = 6;
const PREFIX_WORDS = 200;
const ANSWER_TOKENS = 12;

/** Steady load: so many clients, each sending the next request when the last has ended. */
export class SteadyLoad {
  readonly counts: ClientCounts = { sent: 0, completed: 0, refused: 0, broken: 0 };
  readonly #url: string;
  readonly #rng: Rng;
  readonly #clients: Promise<void>[];
  readonly #waiting: (() => void)[] = [];
  #isStopped = false;

  constructor(url: string, clients: number, rng: Rng) {
    this.#url = url;
    this.#rng = rng;
    this.#clients = Array.from({ length: clients }, () => this.#run());
  }

  /** Resolves once so many more requests have completed: the gateway goes on serving. */
  async moreCompleted(count: number): Promise<void> {
    const target = this.counts.completed + count;
    while (this.counts.completed < target) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
  }

  /** Sends nothing new and waits for the last answers. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#clients);
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      await this.#request();
      for (const resolve of this.#waiting.splice(0)) resolve();
    }
  }

  async #request(): Promise<void> {
    const topic = this.#rng.below(TOPICS);
    const content = `${words(PREFIX_WORDS, `topic${topic}w`)} ${words(1 + this.#rng.below(40), `tail${this.#rng.below(50)}w`)}`;
    this.counts.sent++;
    const response = await fetch(`${this.#url}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify({
        model: "llama-3.1-8b",
        stream: true,
        max_tokens: ANSWER_TOKENS,
        messages: [{ role: "user", content }],
      }),
    });
    const text = await response.text();
    if (response.status !== 200) this.counts.refused++;
    else if (text.endsWith("data: [DONE]\n\n") && !text.includes('"error"')) this.counts.completed++;
    else this.counts.broken++;
  }
}
