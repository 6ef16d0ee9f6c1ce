/**
 * The tokenizer of simulated fleets: a word is a token.
 *
 * Simulated engines compute nothing from tokens, they only have to recognise them again. So a token's id is a hash of its
 * word: no vocabulary to load, no table that grows, the same ids in every process. There is no way back from ids to text,
 * and nobody needs one. Words are what stands between white space; longer ones are cut every `LONGEST_WORD` characters,
 * so that a body without spaces is not one cheap token.
 *
 * A chat is its messages one after another, each between a mark of its role and a mark of its end, and after the last the
 * mark of the role that answers. Prompt and answer of one turn are thereby how the next turn begins, as with the
 * templates of real models.
 */
import { hashString, mixPair } from "../core/rng.ts";
import type { PromptTokenizer, TokenizerPrompt } from "./types.ts";

const LONGEST_WORD = 16;
const WORD: RegExp = new RegExp(`\\S{1,${LONGEST_WORD}}`, "g");
/** Keeps marks apart from words: no text, however chosen, has the id of a mark by being spelt like one. */
const MARK_LANE = 0x6d61726b;
const END_OF_MESSAGE: number = mark("end");
const ANSWERING_ROLE = "assistant";

/** Tokens of text by the word; see the file's note for whom it is. */
export class WordTokenizer implements PromptTokenizer {
  encode(prompt: TokenizerPrompt): Uint32Array {
    if (prompt.kind === "tokens") return prompt.tokens;
    const tokens: number[] = [];
    if (prompt.kind === "text") addWords(prompt.text, tokens);
    else {
      for (const { role, content } of prompt.messages) {
        tokens.push(mark(role));
        addWords(content, tokens);
        tokens.push(END_OF_MESSAGE);
      }
      if (prompt.continuesFinalMessage) tokens.pop();
      else tokens.push(mark(ANSWERING_ROLE));
    }
    return Uint32Array.from(tokens);
  }
}

function addWords(text: string, tokens: number[]): void {
  for (const [word] of text.matchAll(WORD)) tokens.push(hashString(word));
}

function mark(name: string): number {
  return mixPair(MARK_LANE, hashString(name));
}
