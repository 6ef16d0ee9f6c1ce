import { mix32, mixPair } from "../core/rng.ts";
import { type Prompt, segmentCount, segmentEnd } from "./prompt.ts";

/** Short, common words: one token each in usual vocabularies when they follow a space. */
const WORDS: readonly string[] = (
  "the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one " +
  "you were all her she there would their we him been has when who will no more if out so up said what its about than " +
  "into them can only other time new some could these two may first then do any like my now over such our man me even " +
  "most made after also did many off before must well back through years much where your way down should because long"
).split(" ");

/** The token of a segment's content at a position: fixed by seed, id and position alone, below `vocabularyTokens`. */
function contentToken(seed: number, id: number, position: number, vocabularyTokens: number): number {
  const content = mixPair(mix32(seed) ^ (id | 0), Math.floor(id / 4_294_967_296));
  return mixPair(content, position) % vocabularyTokens;
}

/** A prompt as token ids, for engines that take them. */
export function promptTokens(prompt: Prompt, seed: number, vocabularyTokens: number): Uint32Array {
  const tokens = new Uint32Array(prompt.tokens);
  fillContent(prompt, seed, vocabularyTokens, 0, tokens);
  return tokens;
}

/** A prompt, or what comes after its first `from` tokens, as text of one common word per token. */
export function promptText(prompt: Prompt, seed: number, from = 0): string {
  const tokens = new Uint32Array(prompt.tokens - from);
  fillContent(prompt, seed, WORDS.length, from, tokens);
  const words: string[] = [];
  for (const token of tokens) words.push(WORDS[token]);
  return words.join(" ");
}

function fillContent(prompt: Prompt, seed: number, vocabularyTokens: number, from: number, out: Uint32Array): void {
  for (let segment = 0, start = 0; segment < segmentCount(prompt); segment++) {
    const end = segmentEnd(prompt, segment);
    const id = prompt.ids[segment];
    for (let at = Math.max(start, from); at < end; at++) {
      out[at - from] = contentToken(seed, id, at - start, vocabularyTokens);
    }
    start = end;
  }
}
