/** One message of a chat. */
export interface ChatMessage {
  readonly role: string;
  /** Its text; for whoever needs no more than that. */
  readonly content: string;
  /** The message as the client sent it, with tool calls, parts and whatever else a model's template may read. */
  readonly source?: Readonly<Record<string, unknown>>;
}

/** A chat with what else decides how a model's template writes it. */
export interface ChatPrompt {
  readonly kind: "chat";
  readonly messages: readonly ChatMessage[];
  /** The request's `tools`, as they came. */
  readonly tools?: readonly unknown[];
  /** The request's `chat_template_kwargs`. */
  readonly templateArguments?: Readonly<Record<string, unknown>>;
  /** False only if the client asked for no header of the answer: `add_generation_prompt`. */
  readonly addsGenerationPrompt?: boolean;
  /** The last message is the beginning of the answer, which the engine continues: `continue_final_message`. */
  readonly continuesFinalMessage?: boolean;
}

/** What can be tokenized: a chat, a text, or tokens that are there already. */
export type TokenizerPrompt =
  | ChatPrompt
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "tokens"; readonly tokens: Uint32Array };

/** What is yet to be written and tokenized. */
export type WrittenPrompt = Exclude<TokenizerPrompt, { kind: "tokens" }>;

/** Turns prompts into the tokens that an engine caches; gateway and engine must agree on every one of them. */
export interface PromptTokenizer {
  encode(prompt: TokenizerPrompt): Uint32Array;
}
