import { ModelTokenizer, type ModelTokenizerOptions } from "../../tokenizer/model-tokenizer.ts";
import type { ChatPrompt, TokenizerPrompt } from "../../tokenizer/types.ts";
import { isLongChat } from "./long-chat.ts";
import { TokenizerThread } from "./model/thread.ts";
import type { PromptTokens, TokenCounts } from "./types.ts";

/** Tokenizes passages somewhere else than on the event loop. */
export interface PassageEncoder {
  encode(passages: readonly string[]): Promise<readonly Uint32Array[]>;
  close(): Promise<void>;
}

/** Writes and tokenizes chats somewhere else than on the event loop. */
export interface ChatEncoder {
  encodeChat(chat: ChatPrompt): Promise<Uint32Array>;
  close(): Promise<void>;
}

export interface ModelTokensOptions extends ModelTokenizerOptions {
  /** New text of a prompt, in characters, above which another thread tokenizes it. */
  readonly offloadChars?: number;
  /** Who tokenizes long new text; a thread of its own by default. */
  readonly elsewhere?: PassageEncoder;
  /** Who writes and tokenizes chats of very many messages; another thread by default, so that they are in nobody's way. */
  readonly chatsElsewhere?: ChatEncoder;
}

/** A few milliseconds of work: what other streams can wait for. */
const DEFAULT_OFFLOAD_CHARS = 64 * 1024;

/**
 * Tokens by a model's own vocabulary and template. Short new text is tokenized at once, since asking a thread would take
 * longer; long new text by a thread, so that one long prompt does not stall everybody's streams. So are chats that take their
 * template long, whatever is new in them.
 */
export class ModelTokens implements PromptTokens {
  readonly fidelity = "exact";
  readonly #tokenizer: ModelTokenizer;
  readonly #elsewhere: PassageEncoder;
  readonly #chatsElsewhere: ChatEncoder;
  readonly #offloadChars: number;
  #offloaded = 0;

  constructor(options: ModelTokensOptions) {
    this.#tokenizer = new ModelTokenizer(options);
    const { definition, chatTemplate } = options;
    const threadOptions = { definition, ...(chatTemplate !== undefined && { chatTemplate }) };
    this.#elsewhere = options.elsewhere ?? new TokenizerThread(threadOptions);
    this.#chatsElsewhere = options.chatsElsewhere ?? new TokenizerThread(threadOptions);
    this.#offloadChars = options.offloadChars ?? DEFAULT_OFFLOAD_CHARS;
  }

  get counts(): TokenCounts {
    return { offloaded: this.#offloaded, guessed: 0 };
  }

  tokensOf(prompt: TokenizerPrompt): Uint32Array | Promise<Uint32Array> {
    if (prompt.kind === "tokens") return prompt.tokens;
    if (prompt.kind === "chat" && isLongChat(prompt)) return this.#longChat(prompt);
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

  async close(): Promise<void> {
    await Promise.all([this.#elsewhere.close(), this.#chatsElsewhere.close()]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #longChat(prompt: ChatPrompt): Promise<Uint32Array> {
    try {
      const tokens = await this.#chatsElsewhere.encodeChat(prompt);
      this.#offloaded++;
      return tokens;
    } catch {
      return this.#tokenizer.encode(prompt);
    }
  }
}
