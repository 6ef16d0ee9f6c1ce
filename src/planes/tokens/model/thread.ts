import { Worker } from "node:worker_threads";
import { WarmpathError } from "../../../core/errors.ts";
import type { ModelTokenizerOptions } from "../../../tokenizer/model-tokenizer.ts";
import type { WrittenPrompt } from "../../../tokenizer/types.ts";
import type { ThreadAnswer, ThreadJob } from "./thread-entry.ts";

/** What a thread loads; there is such a file once the package is built. */
const ENTRY = new URL("./thread-entry.js", import.meta.url);

interface Waiting {
  readonly resolve: (tokens: readonly Uint32Array[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Tokenizes in a thread of its own, which starts with the first that it is given and is started again if it dies. */
export class TokenizerThread {
  readonly #options: ModelTokenizerOptions;
  readonly #entry: URL;
  readonly #waiting = new Map<number, Waiting>();
  #thread: Worker | undefined;
  #jobs = 0;

  constructor(options: ModelTokenizerOptions, entry: URL = ENTRY) {
    this.#options = options;
    this.#entry = entry;
  }

  /** The tokens of each passage, in order. */
  encode(passages: readonly string[]): Promise<readonly Uint32Array[]> {
    return this.#do({ id: ++this.#jobs, passages });
  }

  /** The tokens of a whole prompt, a chat as the model's template writes it. */
  async encodePrompt(prompt: WrittenPrompt): Promise<Uint32Array> {
    const [tokens] = await this.#do({ id: ++this.#jobs, prompt: JSON.stringify(prompt) });
    return tokens;
  }

  async close(): Promise<void> {
    const thread = this.#thread;
    this.#fail(new WarmpathError("WP_INVALID_STATE", "the tokenizer was closed"));
    await thread?.terminate();
  }

  #do(job: ThreadJob): Promise<readonly Uint32Array[]> {
    this.#thread ??= this.#start();
    const thread = this.#thread;
    return new Promise((resolve, reject) => {
      this.#waiting.set(job.id, { resolve, reject });
      // While somebody waits the process must not end; between jobs it may.
      thread.ref();
      thread.postMessage(job, []);
    });
  }

  #start(): Worker {
    const thread = new Worker(this.#entry, { workerData: this.#options });
    thread.on("message", ({ id, tokens, problem = "" }: ThreadAnswer) => {
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
