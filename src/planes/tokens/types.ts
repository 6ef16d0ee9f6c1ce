/**
 * The token port: how a gateway gets the tokens of a prompt, which decide where its cache may lie.
 *
 * It never fails a request. A prompt that cannot be tokenized as the engine would (a template that refuses it, an endpoint that
 * is down) still gets tokens, which then match nothing: the request is routed by load, and the engine says what is wrong with it.
 */
import type { TokenizerPrompt } from "../../tokenizer/types.ts";

/** How often tokens were made in another way than the ordinary one. */
export interface TokenCounts {
  /** Prompts tokenized off the event loop. */
  readonly offloaded: number;
  /** Prompts whose tokens are a guess, because the right ones could not be had. */
  readonly guessed: number;
}

/** Where the tokens of prompts come from. */
export interface PromptTokens {
  /**
   * Whether the tokens are the engine's own. Where they are `approximate`, KV events cannot be matched with them, and what the
   * gateway knows of caches is what it routed itself.
   */
  readonly fidelity: "exact" | "approximate";
  readonly counts: TokenCounts;
  /** Whether somebody else is asked for all tokens, so that none are there at once; false if absent. */
  readonly areAskedFor?: boolean;
  /** The tokens at once where that is quick, else a promise of them. */
  tokensOf(prompt: TokenizerPrompt): Uint32Array | Promise<Uint32Array>;
  close(): Promise<void>;
}
