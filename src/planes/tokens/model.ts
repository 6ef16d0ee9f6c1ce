import { isLongPrompt } from "../../tokenizer/long-prompt.ts";
import { ModelTokenizer, type ModelTokenizerOptions } from "../../tokenizer/model-tokenizer.ts";
import type { TokenizerPrompt, WrittenPrompt } from "../../tokenizer/types.ts";
import { TokenizerThread } from "./model/thread.ts";
import type { PromptTokens, TokenCounts } from "./types.ts";

/** Tokenizes passages somewhere else than on the event loop. */
export interface PassageEncoder {
  encode(passages: readonly string[]): Promise<readonly Uint32Array[]>;
  close(): Promise<void>;
}

/** Writes and tokenizes whole prompts somewhere else than on the event loop. */
export interface PromptEncoder {
  encodePrompt(prompt: WrittenPrompt): Promise<Uint32Array>;
  close(): Promise<void>;
}

export interface ModelTokensOptions extends ModelTokenizerOptions {
  /** New text of a prompt, in characters, above which another thread tokenizes it. */
  readonly offloadChars?: number;
  /** Who tokenizes long new text; a thread of its own by default. */
  readonly elsewhere?: PassageEncoder;
  /** Who does all of a prompt that takes long; another thread by default, so that such prompts are in nobody's way. */
  readonly wholeElsewhere?: PromptEncoder;
}

/** A few milliseconds of work: what other streams can wait for. */
const DEFAULT_OFFLOAD_CHARS = 64 * 1024;

/** Pieces of text that are too short to be kept, and are therefore new each time. */
const MOST_SCRAPS = 4096;

/**
 * Tokens by a model's own vocabulary and template. Short new text is tokenized at once, since asking a thread would take
 * longer; long new text by a thread, so that one long prompt does not stall everybody's streams. So are prompts that take long
 * whatever is new in them.
 */
export class ModelTokens implements PromptTokens {
  readonly fidelity = "exact";
  readonly #tokenizer: ModelTokenizer;
  readonly #elsewhere: PassageEncoder;
  readonly #wholeElsewhere: PromptEncoder;
  readonly #offloadChars: number;
  #offloaded = 0;

  constructor(options: ModelTokensOptions) {
    this.#tokenizer = new ModelTokenizer(options);
    const { definition, chatTemplate } = options;
    const threadOptions = { definition, ...(chatTemplate !== undefined && { chatTemplate }) };
    this.#elsewhere = options.elsewhere ?? new TokenizerThread(threadOptions);
    this.#wholeElsewhere = options.wholeElsewhere ?? new TokenizerThread(threadOptions);
    this.#offloadChars = options.offloadChars ?? DEFAULT_OFFLOAD_CHARS;
  }

  get counts(): TokenCounts {
    return { offloaded: this.#offloaded, guessed: 0 };
  }

  tokensOf(prompt: TokenizerPrompt): Uint32Array | Promise<Uint32Array> {
    if (prompt.kind === "tokens") return prompt.tokens;
    const outline = isLongPrompt(prompt) ? undefined : this.#tokenizer.outline(prompt, MOST_SCRAPS);
    if (outline === undefined) return this.#whole(prompt);
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

  async close(): Promise<void> {
    await Promise.all([this.#elsewhere.close(), this.#wholeElsewhere.close()]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #whole(prompt: WrittenPrompt): Promise<Uint32Array> {
    try {
      const tokens = await this.#wholeElsewhere.encodePrompt(prompt);
      this.#offloaded++;
      return tokens;
    } catch {
      return this.#tokenizer.encode(prompt);
    }
  }
}
