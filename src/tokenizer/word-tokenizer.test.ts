import { describe, expect, test } from "vitest";
import { WordTokenizer } from "./word-tokenizer.ts";

const tokenizer = new WordTokenizer();
const text = (content: string): number[] => [...tokenizer.encode({ kind: "text", text: content })];

describe("the word tokenizer", () => {
  test("gives each word one token, whatever white space is around it", () => {
    expect(text(" one two\n\tone ")).toEqual([...text("one"), ...text("two"), ...text("one")]);
    expect(text("one two")).toHaveLength(2);
    expect(text("")).toEqual([]);
  });

  test("cuts words without end, so that they cost what they are long", () => {
    expect(text("x".repeat(160))).toHaveLength(10);
  });

  test("gives the same ids in every process and every version", () => {
    // FNV-1a with the finalizer of MurmurHash3, computed by another program.
    expect(text("hello world")).toEqual([2290972270, 105664825]);
  });

  test("begins the next turn of a chat with the prompt and the answer of this one", () => {
    const first = { role: "user", content: "how are you" };
    const prompt = [...tokenizer.encode({ kind: "chat", messages: [first] })];
    const answer = text("fine thanks");
    const next = tokenizer.encode({
      kind: "chat",
      messages: [first, { role: "assistant", content: "fine thanks" }, { role: "user", content: "good" }],
    });
    expect([...next].slice(0, prompt.length + answer.length)).toEqual([...prompt, ...answer]);
  });

  test("goes on behind an answer that is left open", () => {
    const messages = [{ role: "user", content: "how are you" }];
    const prompt = [...tokenizer.encode({ kind: "chat", messages })];
    const open = { kind: "chat", continuesFinalMessage: true } as const;
    const said = tokenizer.encode({ ...open, messages: [...messages, { role: "assistant", content: "fine thanks" }] });
    expect([...said]).toEqual([...prompt, ...text("fine thanks")]);
  });

  test("tells roles apart, and marks from words", () => {
    const chat = (role: string): number[] => [
      ...tokenizer.encode({ kind: "chat", messages: [{ role, content: "x" }] }),
    ];
    expect(chat("user")).not.toEqual(chat("system"));
    expect(chat("user")).not.toContain(text("user")[0]);
  });

  test("passes tokens through", () => {
    const tokens = Uint32Array.of(1, 2, 3);
    expect(tokenizer.encode({ kind: "tokens", tokens })).toBe(tokens);
  });
});
