import { describe, expect, test } from "vitest";
import type { PromptTokenizer } from "../tokenizer/types.ts";
import { WordTokenizer } from "../tokenizer/word-tokenizer.ts";
import { AnswerMaker, type AnswerWish } from "./answer.ts";

const tokenizer = new WordTokenizer();
const maker = new AnswerMaker(tokenizer);
const wish = (changes: Partial<AnswerWish> = {}): AnswerWish => ({
  promptTokens: Uint32Array.of(1, 2, 3),
  isContinuation: false,
  limit: undefined,
  naturalTokens: 20,
  stop: [],
  ...changes,
});

describe("made-up answers", () => {
  test("differ by the seed that a client gives", () => {
    const text = (seed: number): string => maker.make(wish({ seed })).pieces.join("");
    expect(text(7)).toBe(text(7));
    expect(new Set([text(0), text(7), text(8)]).size).toBe(3);
  });

  test("tokenize to the tokens they were cached with, as a text and behind another", () => {
    const chat = maker.make(wish());
    expect([...tokenizer.encode({ kind: "text", text: chat.pieces.join("") })]).toEqual([...chat.tokens]);
    const text = maker.make(wish({ isContinuation: true }));
    const continued = tokenizer.encode({ kind: "text", text: `before${text.pieces.join("")}` });
    expect([...continued.subarray(1)]).toEqual([...text.tokens]);
  });

  test("are the same for the same prompt and other ones for another", () => {
    const text = (promptTokens: Uint32Array): string => maker.make(wish({ promptTokens })).pieces.join("");
    expect(text(Uint32Array.of(1, 2, 3))).toBe(text(Uint32Array.of(1, 2, 3)));
    expect(text(Uint32Array.of(1, 2, 4))).not.toBe(text(Uint32Array.of(1, 2, 3)));
  });

  test("follow from what is before them: half an answer is continued by the other half", () => {
    for (const isContinuation of [true, false]) {
      const whole = maker.make(wish({ isContinuation, seed: 7 }));
      const promptTokens = Uint32Array.of(1, 2, 3, ...whole.tokens.subarray(0, 8));
      const rest = maker.make(wish({ promptTokens, isContinuation: true, naturalTokens: 12, seed: 7 }));
      expect([...whole.pieces.slice(0, 8), ...rest.pieces]).toEqual(whole.pieces);
      expect([...rest.tokens]).toEqual([...whole.tokens.subarray(8)]);
    }
  });

  test("end by themselves or where the limit cuts them", () => {
    expect(maker.make(wish())).toMatchObject({ finishReason: "stop", hasEndToken: true });
    const cut = maker.make(wish({ limit: 5 }));
    expect(cut).toMatchObject({ finishReason: "length", hasEndToken: false });
    expect(cut.tokens).toHaveLength(5);
  });

  test("show nothing of the first stop, also where it begins and ends inside words", () => {
    const whole = maker.make(wish());
    const text = whole.pieces.join("");
    const stop = text.slice(13, 19);
    const at = text.indexOf(stop);
    const cut = maker.make(wish({ stop: ["not in it", stop] }));
    expect(cut.pieces.join("")).toBe(text.slice(0, at));
    expect(cut).toMatchObject({ finishReason: "stop", hasEndToken: false });
    const generated = whole.pieces.slice(0, cut.pieces.length).join("");
    expect(generated.length).toBeGreaterThanOrEqual(at + stop.length);
    expect(whole.pieces.slice(0, cut.pieces.length - 1).join("").length).toBeLessThan(at + stop.length);
    expect(cut.tokens).toEqual(whole.tokens.slice(0, cut.pieces.length));
  });

  test("need a tokenizer that keeps words apart", () => {
    const letters: PromptTokenizer = {
      encode: (prompt) =>
        prompt.kind === "text" ? Uint32Array.from(prompt.text, (c) => c.charCodeAt(0)) : new Uint32Array(0),
    };
    expect(() => new AnswerMaker(letters)).toThrow("does not keep words apart");
  });
});
