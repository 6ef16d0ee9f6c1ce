import { readFileSync } from "node:fs";
import { Tokenizer } from "@huggingface/tokenizers";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { type Family, familyFile, trainedFile } from "../../../test/support/model-files.ts";
import { ByteBpe } from "./byte-bpe.ts";
import { readTokenizerJson } from "./tokenizer-json.ts";

const FAMILIES: readonly Family[] = ["qwen", "llama3", "gpt2", "o200k"];
const FIXTURE = new URL("../../../test/fixtures/tokenizer/rust-tokens.json", import.meta.url);

/** Characters of every kind that patterns, normalizers and encodings tell apart, and words that vocabularies have. */
const ATOMS = [
  ..." |\n|\t|\r|'|_|-|.|x|7".split("|"),
  ..."'s 'LL 've don't the Hello information -> === <|im_start|> <|im_end|> <|im_ <tool_call>".split(" "),
  ..."12345 ½ Ⅷ ١٢ 𝟙 é ñ 日本語 한국어 العربية ß ﬁ 🙂 👩‍👧 𝒳 ́".split(" "),
  ..."\u3000 \u2028 \u200b \u0000 \ud800 \udc00 \u1100\u1161 \u212b".split(" "),
  "\n\n",
  "   ",
];

const text = fc.oneof(
  fc.array(fc.constantFrom(...ATOMS), { maxLength: 40 }).map((atoms) => atoms.join("")),
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.lorem({ maxCount: 3, mode: "sentences" }),
);

/** GPT-2's pattern in the oracle takes JavaScript's white space, which differs from the engines' in these two. */
const withoutDisputed = (value: string): string => value.replace(/[\u0085\ufeff]/g, "");

describe.each(FAMILIES)("byte-level BPE with the settings of %s", (family) => {
  let bpe: ByteBpe;
  let oracle: Tokenizer;

  beforeAll(() => {
    const file = familyFile(family);
    bpe = new ByteBpe(readTokenizerJson(file));
    oracle = new Tokenizer(file, {});
  });

  test("gives the tokens of @huggingface/tokenizers for any text", () => {
    fc.assert(
      fc.property(text, (any) => {
        const value = withoutDisputed(any);
        expect([...bpe.encode(value)]).toEqual(oracle.encode(value, { add_special_tokens: false }).ids);
      }),
      { numRuns: 300 },
    );
  });

  test("gives the tokens of @huggingface/tokenizers for long runs of one kind", () => {
    const runs = [
      "a",
      "A",
      "7",
      "=",
      " ",
      "\n",
      "\u0301\u0316",
      "\u0316\u0301\u{1d165}",
      "文",
      "é",
      "🙂",
      "\ud800",
      "<|im_",
      "'",
    ];
    for (const run of runs) {
      const value = `x${run.repeat(700)}`;
      expect([run, ...bpe.encode(value)]).toEqual([run, ...oracle.encode(value, { add_special_tokens: false }).ids]);
    }
  });

  test("gives the tokens of the engines' own tokenizers for texts that are easy to get wrong", () => {
    const rows = JSON.parse(readFileSync(FIXTURE, "utf8")) as { text: string; tokens: Record<Family, number[]> }[];
    expect(rows.length).toBeGreaterThan(100);
    for (const row of rows) expect([row.text, ...bpe.encode(row.text)]).toEqual([row.text, ...row.tokens[family]]);
  });
});

describe("byte-level BPE", () => {
  const lesson = "the cat and the hat sat on the mat with that bat, then the rat ate the oat; ".repeat(3);

  test("merges pieces of any length alike", () => {
    const file = trainedFile(lesson, 60);
    const bpe = new ByteBpe(readTokenizerJson(file));
    const oracle = new Tokenizer(file, {});
    const letters = fc.array(fc.constantFrom(..."t h e c a s n o".split(" ")), { minLength: 1, maxLength: 400 });
    fc.assert(
      fc.property(letters, (word) => {
        expect([...bpe.encode(word.join(""))]).toEqual(oracle.encode(word.join("")).ids);
      }),
      { numRuns: 300 },
    );
  });

  test("takes a piece of a million characters", () => {
    const bpe = new ByteBpe(readTokenizerJson(trainedFile("aaaa aaaa aaaaaaaa", 3)));
    expect(bpe.encode("a".repeat(1_000_000)).length).toBeLessThan(500_001);
  });

  test("gives the same tokens when its cache is too small for the text", () => {
    const definition = readTokenizerJson(trainedFile(lesson, 60));
    const small = new ByteBpe(definition, 4);
    const large = new ByteBpe(definition);
    const words = fc.array(fc.constantFrom("the", " cat", " hat", "oats", "-", " rattle", "ten"), { maxLength: 40 });
    fc.assert(
      fc.property(words, (list) => {
        expect(small.encode(list.join(""))).toEqual(large.encode(list.join("")));
      }),
    );
  });

  test("takes white space along where an added token asks for it", () => {
    const file = trainedFile(lesson, 20);
    const strips = { id: 999, content: "<mask>", lstrip: true, rstrip: true, normalized: false, special: true };
    const bpe = new ByteBpe(readTokenizerJson({ ...file, added_tokens: [strips] }));
    expect([...bpe.encode("a \n<mask>  b<mask>")]).toEqual([...bpe.encode("a"), 999, ...bpe.encode("b"), 999]);
  });

  test("finds the longest of the added tokens that start at one place", () => {
    const file = trainedFile(lesson, 20);
    const added = ["<a>", "<a><b>"].map((content, i) => ({ id: 900 + i, content }));
    const bpe = new ByteBpe(readTokenizerJson({ ...file, added_tokens: added }));
    expect([...bpe.encode("<a><b><a>")]).toEqual([901, 900]);
  });

  test("looks for normalized added tokens in normalized text", () => {
    const file = trainedFile(lesson, 20);
    const added = [{ id: 900, content: "e\u0301", normalized: true }];
    const bpe = new ByteBpe(readTokenizerJson({ ...file, added_tokens: added }));
    expect([...bpe.encode("\u00e9")]).toEqual([900]);
    expect([...bpe.encode("e\u0301")]).toEqual([900]);
  });
});
