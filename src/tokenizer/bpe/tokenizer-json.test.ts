import { describe, expect, test } from "vitest";
import { type TokenizerFile, trainedFile } from "../../../test/support/model-files.ts";
import { readTokenizerJson } from "./tokenizer-json.ts";

const file = trainedFile("to be or not to be, that is the question", 10);
const LLAMA_FRAME = {
  type: "Sequence",
  processors: [
    { type: "ByteLevel", add_prefix_space: true, trim_offsets: false, use_regex: true },
    {
      type: "TemplateProcessing",
      single: [{ SpecialToken: { id: "<|begin_of_text|>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
      special_tokens: {
        "<|begin_of_text|>": { id: "<|begin_of_text|>", ids: [128000], tokens: ["<|begin_of_text|>"] },
      },
    },
  ],
};

describe("reading tokenizer.json", () => {
  test("takes merges as strings and as pairs", () => {
    const pairs = file.model.merges.map((merge) => merge.split(" "));
    const { merges } = readTokenizerJson({ ...file, model: { ...file.model, merges: pairs } });
    expect(merges).toEqual(readTokenizerJson(file).merges);
  });

  test("keeps the merges in memory that threads can share", () => {
    expect(readTokenizerJson(file).merges.buffer).toBeInstanceOf(SharedArrayBuffer);
  });

  test("reads what stands before every text", () => {
    const { textPrefix, textSuffix } = readTokenizerJson({ ...file, post_processor: LLAMA_FRAME });
    expect([textPrefix, textSuffix]).toEqual([[128000], []]);
  });

  const model = (change: object): unknown => ({ ...file, model: { ...file.model, ...change } });
  const splits = (change: object): unknown => {
    const [split, bytes] = (file.pre_tokenizer as { pretokenizers: object[] }).pretokenizers;
    return { ...file, pre_tokenizer: { type: "Sequence", pretokenizers: [{ ...split, ...change }, bytes] } };
  };
  const refused: [string, unknown, string][] = [
    ["another model", model({ type: "Unigram" }), 'model.type is "Unigram"'],
    ["byte fallback", model({ byte_fallback: true }), "model.byte_fallback"],
    ["a merge of unknown tokens", model({ merges: ["q zz"] }), "model.merges[0]"],
    ["a vocabulary without bytes", model({ vocab: { a: 0 }, merges: [] }), "no token for byte"],
    ["an unknown normalizer", { ...file, normalizer: { type: "Lowercase" } }, 'normalizer.type is "Lowercase"'],
    ["a pre-tokenizer of words", { ...file, pre_tokenizer: { type: "Metaspace" } }, "pre_tokenizer.type"],
    ["a prefix space", { ...file, pre_tokenizer: { type: "ByteLevel", add_prefix_space: true } }, "adds a space"],
    ["splits that drop text", splits({ behavior: "Removed" }), "pre_tokenizer.behavior"],
    ["patterns that JavaScript lacks", splits({ pattern: { Regex: "\\p{L}++" } }), "the pattern \\p{L}++"],
    ["tokens that stand alone", { ...file, added_tokens: [{ id: 1, content: "x", single_word: true }] }, "stand alone"],
    ["no object", [], "the file must be an object"],
  ];
  test.each(refused)("refuses %s, and says where", (_, json, message) => {
    expect(() => readTokenizerJson(json as TokenizerFile)).toThrow(message);
  });
});
