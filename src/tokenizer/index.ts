/** Text to tokens, for matching prompts against caches. */
export { ByteBpe } from "./bpe/byte-bpe.ts";
export type { AddedToken, BpeDefinition, NormalForm } from "./bpe/definition.ts";
export { readTokenizerJson } from "./bpe/tokenizer-json.ts";
export { ModelTokenizer, type ModelTokenizerOptions, type PromptOutline } from "./model-tokenizer.ts";
export type { Outline } from "./passages.ts";
export { ChatTemplate, type ChatTemplateSource } from "./template/chat-template.ts";
export { TextChunkTokenizer } from "./text-chunk-tokenizer.ts";
export type { ChatMessage, ChatPrompt, PromptTokenizer, TokenizerPrompt } from "./types.ts";
export { WordTokenizer } from "./word-tokenizer.ts";
