import type { PromptTokenizer, TokenizerPrompt } from "../../tokenizer/types.ts";
import type { PromptTokens, TokenCounts } from "./types.ts";

/** Tokens made where they are asked for, by a tokenizer that is quick enough for any prompt. */
export class InlineTokens implements PromptTokens {
  readonly fidelity: "exact" | "approximate";
  readonly counts: TokenCounts = { offloaded: 0, guessed: 0 };
  readonly #tokenizer: PromptTokenizer;

  constructor(tokenizer: PromptTokenizer, fidelity: "exact" | "approximate") {
    this.#tokenizer = tokenizer;
    this.fidelity = fidelity;
  }

  tokensOf(prompt: TokenizerPrompt): Uint32Array {
    return this.#tokenizer.encode(prompt);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
