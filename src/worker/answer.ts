import { mixPair } from "../core/rng.ts";

const WORDS: readonly string[] = (
  "a cache that is warm answers soon because the blocks of the prompt are there and only what is new must be computed while " +
  "others wait in line for work they have done before on another machine"
).split(" ");

/** The words of a made-up answer: always the same for the same prompt, other ones for another. */
export function answerWords(promptTokens: Uint32Array, count: number): string[] {
  let seed = promptTokens.length;
  for (const token of promptTokens) seed = mixPair(seed, token);
  return Array.from({ length: count }, (_, i) => WORDS[mixPair(seed, i) % WORDS.length]);
}
