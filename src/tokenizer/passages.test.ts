import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { trainedFile } from "../../test/support/model-files.ts";
import { ByteBpe } from "./bpe/byte-bpe.ts";
import { readTokenizerJson } from "./bpe/tokenizer-json.ts";
import { PassageTokenizer, passageEnd } from "./passages.ts";

const definition = readTokenizerJson(
  trainedFile("the cat sat on the mat and that was that, said the cat ".repeat(4), 60),
);
const whole = new ByteBpe(definition);

const sentence = fc.lorem({ maxCount: 60, mode: "words" });
const strange = fc.constantFrom(
  "\n\n",
  " 日本語の文 ",
  "'s 'll",
  "  ",
  "e\u0301 ",
  "\ud83d",
  "x".repeat(300),
  "12345 ",
  "<|im_end|>",
);
const text = fc
  .array(fc.oneof({ weight: 3, arbitrary: sentence }, strange), { maxLength: 40 })
  .map((parts) => parts.join(" "));

afterEach(() => vi.restoreAllMocks());

describe("tokens by passages", () => {
  test("are those of the whole text, whatever was seen before", () => {
    const passages = new PassageTokenizer(new ByteBpe(definition));
    fc.assert(
      fc.property(text, text, (first, second) => {
        expect(passages.encode(first)).toEqual(whole.encode(first));
        expect(passages.encode(first + second)).toEqual(whole.encode(first + second));
      }),
    );
  });

  test("stay so when the cache keeps next to nothing", () => {
    const passages = new PassageTokenizer(new ByteBpe(definition), 5_000);
    fc.assert(
      fc.property(text, (any) => {
        expect(passages.encode(any)).toEqual(whole.encode(any));
        expect(passages.encode(any)).toEqual(whole.encode(any));
      }),
    );
  });

  test("are made once of text that comes again, at the start of a longer one or in the middle of another", () => {
    const passages = new PassageTokenizer(new ByteBpe(definition));
    const document = "A long document about cats, and mats. ".repeat(500);
    passages.encode(document);
    const encode = vi.spyOn(ByteBpe.prototype, "encodePlain");
    passages.encode(`${document}And now something new.`);
    const chars = encode.mock.calls.reduce((sum, [passage]) => sum + passage.length, 0);
    expect(chars).toBeLessThan(2048 + 200);
    encode.mockClear();
    passages.encode(`<|im_start|>${document}<|im_end|>`);
    expect(encode).not.toHaveBeenCalled();
  });

  test("are cut without a look behind the part they belong to", () => {
    const looked: number[] = [];
    const letters = {
      charCodeAt: (at: number): number => {
        looked.push(at);
        return 0x78;
      },
    };
    expect(passageEnd(letters, 1000, 5000)).toBe(5000);
    expect(Math.max(...looked)).toBe(4999);
    expect(passageEnd("some words ".repeat(1000), 0, 11_000)).toBe(2050);
    expect(passageEnd("some words ".repeat(1000), 0, 2050)).toBe(2050);
    expect(passageEnd("x1 ".repeat(1000), 0, 3000)).toBe(3000);
  });

  test("can be made elsewhere where they are missing", () => {
    const passages = new PassageTokenizer(new ByteBpe(definition));
    const long = "The cat said that. ".repeat(400);
    const outline = passages.outline(long);
    expect(outline.missingChars).toBe(long.length);
    expect(outline.missing.join("")).toBe(long);
    const tokens = outline.missing.map((passage) => whole.encodePlain(passage));
    expect(passages.complete(outline, tokens)).toEqual(whole.encode(long));
    expect(passages.outline(long).missing).toEqual([]);
  });
});
