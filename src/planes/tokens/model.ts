import { ModelTokenizer, type ModelTokenizerOptions } from "../../tokenizer/model-tokenizer.ts";
import type { TokenizerPrompt } from "../../tokenizer/types.ts";
import { TokenizerThread } from "./model/thread.ts";
import type { PromptTokens, TokenCounts } from "./types.ts";

/** Tokenizes passages somewhere else than on the event loop. */
export interface PassageEncoder {
  encode(passages: readonly string[]): Promise<readonly Uint32Array[]>;
  close(): Promise<void>;
}

export interface ModelTokensOptions extends ModelTokenizerOptions {
  /** New text of a prompt, in characters, above which another thread tokenizes it. */
  readonly offloadChars?: number;
  /** Who tokenizes long new text; a thread of its own by default. */
  readonly elsewhere?: PassageEncoder;
}

/** A few milliseconds of work: what other streams can wait for. */
const DEFAULT_OFFLOAD_CHARS = 64 * 1024;

/**
 * Tokens by a model's own vocabulary and template. Short new text is tokenized at once, since asking a thread would take
 * longer; long new text by a thread, so that one long prompt does not stall everybody's streams.
 */
export class ModelTokens implements PromptTokens {
  readonly fidelity = "exact";
  readonly #tokenizer: ModelTokenizer;
  readonly #elsewhere: PassageEncoder;
  readonly #offloadChars: number;
  #offloaded = 0;

  constructor(options: ModelTokensOptions) {
    this.#tokenizer = new ModelTokenizer(options);
    this.#elsewhere = options.elsewhere ?? new TokenizerThread(options.definition);
    this.#offloadChars = options.offloadChars ?? DEFAULT_OFFLOAD_CHARS;
  }

  get counts(): TokenCounts {
    return { offloaded: this.#offloaded, guessed: 0 };
  }

  tokensOf(prompt: TokenizerPrompt): Uint32Array | Promise<Uint32Array> {
    if (prompt.kind === "tokens") return prompt.tokens;
    const outline = this.#tokenizer.outline(prompt);
    if (outline.missingChars <= this.#offloadChars) return this.#tokenizer.complete(outline);
    return this.#elsewhere.encode(outline.missing).then(
      (tokens) => {
        this.#offloaded++;
        return this.#tokenizer.complete(outline, tokens);
      },
      // A stall is better than a request that fails for want of a thread.
      () => this.#tokenizer.complete(outline),
    );
  }

  close(): Promise<void> {
    return this.#elsewhere.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
