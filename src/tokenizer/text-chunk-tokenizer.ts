/**
 * For gateways that are given no tokenizer: every few characters of text count as a token, named by their hash.
 *
 * Block hashes of a conversation that grows stay the same, because characters are counted from the start of each message, so a
 * gateway can remember which worker it sent a prefix to. What it costs:
 * - the hashes are not those of the engine's tokens, so KV events can confirm nothing; only what was routed is known;
 * - lengths are estimates: about right for English, too low for code and digits, less than half of the truth for Chinese;
 * - block ends are not the engine's: a prefix is seen a block too short or too long.
 */
import { hashString, mixPair } from "../core/rng.ts";
import type { PromptTokenizer, TokenizerPrompt } from "./types.ts";

/** English has about four characters a token in vocabularies of 100,000 entries and more. */
const CHARS_PER_TOKEN = 4;
const MARK_LANE = 0x74657874;

/** Pseudo-tokens of text by its characters; see the file's note on what they are good for. */
export class TextChunkTokenizer implements PromptTokenizer {
  encode(prompt: TokenizerPrompt): Uint32Array {
    if (prompt.kind === "tokens") return prompt.tokens;
    if (prompt.kind === "text") {
      const tokens = new Uint32Array(chunkCount(prompt.text));
      writeChunks(prompt.text, tokens, 0);
      return tokens;
    }
    const { messages, continuesFinalMessage = false } = prompt;
    const answer = continuesFinalMessage ? 0 : 1;
    const length = messages.reduce((sum, { content }) => sum + 1 + chunkCount(content), answer);
    const tokens = new Uint32Array(length);
    let at = 0;
    for (const { role, content } of messages) {
      tokens[at++] = roleMark(role);
      at = writeChunks(content, tokens, at);
    }
    if (!continuesFinalMessage) tokens[at] = roleMark("assistant");
    return tokens;
  }
}

function chunkCount(text: string): number {
  return Math.ceil(text.length / CHARS_PER_TOKEN);
}

function writeChunks(text: string, out: Uint32Array, start: number): number {
  let at = start;
  for (let from = 0; from < text.length; from += CHARS_PER_TOKEN) {
    const end = Math.min(from + CHARS_PER_TOKEN, text.length);
    let hash = 0x811c9dc5 | 0;
    for (let i = from; i < end; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    out[at++] = hash;
  }
  return at;
}

function roleMark(role: string): number {
  return mixPair(MARK_LANE, hashString(role));
}
