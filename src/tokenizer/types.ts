/** What can be tokenized: a chat, a text, or tokens that are there already. */
export type TokenizerPrompt =
  | { readonly kind: "chat"; readonly messages: readonly { readonly role: string; readonly content: string }[] }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "tokens"; readonly tokens: Uint32Array };

/** Turns prompts into the tokens that an engine caches; gateway and engine must agree on every one of them. */
export interface PromptTokenizer {
  encode(prompt: TokenizerPrompt): Uint32Array;
}
