import { Worker } from "node:worker_threads";
import { WarmpathError } from "../../../core/errors.ts";
import type { BpeDefinition } from "../../../tokenizer/bpe/definition.ts";
import type { PassageAnswer, PassageJob } from "./thread-entry.ts";

/** What a thread loads; there is such a file once the package is built. */
const ENTRY = new URL("./thread-entry.js", import.meta.url);

interface Waiting {
  readonly resolve: (tokens: readonly Uint32Array[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Tokenizes passages in a thread of its own, which starts with the first of them and is started again if it dies. */
export class TokenizerThread {
  readonly #definition: BpeDefinition;
  readonly #entry: URL;
  readonly #waiting = new Map<number, Waiting>();
  #thread: Worker | undefined;
  #jobs = 0;

  constructor(definition: BpeDefinition, entry: URL = ENTRY) {
    this.#definition = definition;
    this.#entry = entry;
  }

  /** The tokens of each passage, in order. */
  encode(passages: readonly string[]): Promise<readonly Uint32Array[]> {
    this.#thread ??= this.#start();
    const thread = this.#thread;
    const job: PassageJob = { id: ++this.#jobs, passages };
    return new Promise((resolve, reject) => {
      this.#waiting.set(job.id, { resolve, reject });
      // While somebody waits the process must not end; between jobs it may.
      thread.ref();
      thread.postMessage(job, []);
    });
  }

  async close(): Promise<void> {
    const thread = this.#thread;
    this.#fail(new WarmpathError("WP_INVALID_STATE", "the tokenizer was closed"));
    await thread?.terminate();
  }

  #start(): Worker {
    const thread = new Worker(this.#entry, { workerData: this.#definition });
    thread.on("message", ({ id, tokens, problem = "" }: PassageAnswer) => {
      const waiting = this.#waiting.get(id);
      if (tokens === undefined) waiting?.reject(new WarmpathError("WP_INVALID_INPUT", `not tokenized: ${problem}`));
      else waiting?.resolve(tokens);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) thread.unref();
    });
    const died = (error: unknown): void => {
      if (this.#thread === thread) this.#fail(error);
    };
    thread.on("error", died);
    thread.on("exit", () => died(new WarmpathError("WP_INVALID_STATE", "the tokenizer's thread has ended")));
    return thread;
  }

  #fail(error: unknown): void {
    this.#thread = undefined;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
