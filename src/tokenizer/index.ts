/** Text to tokens, for matching prompts against caches. */
export type { PromptTokenizer, TokenizerPrompt } from "./types.ts";
export { WordTokenizer } from "./word-tokenizer.ts";
