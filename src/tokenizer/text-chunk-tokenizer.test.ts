import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sequenceHashes } from "../core/hash.ts";
import { TextChunkTokenizer } from "./text-chunk-tokenizer.ts";

const tokenizer = new TextChunkTokenizer();
const message = fc.record({
  role: fc.constantFrom("user", "assistant", "tool"),
  content: fc.string({ unit: "binary" }),
});

describe("chunks of text as tokens", () => {
  test("are one for every four characters", () => {
    expect(tokenizer.encode({ kind: "text", text: "sixteen letters!" })).toHaveLength(4);
    expect(tokenizer.encode({ kind: "text", text: "sixteen letters!?" })).toHaveLength(5);
    expect(tokenizer.encode({ kind: "text", text: "" })).toHaveLength(0);
  });

  test("go on behind an answer that is left open", () => {
    const messages = [{ role: "user", content: "how are you" }];
    const prompt = tokenizer.encode({ kind: "chat", messages });
    const open = [...messages, { role: "assistant", content: "fine" }];
    const said = tokenizer.encode({ kind: "chat", messages: open, continuesFinalMessage: true });
    expect([...said]).toEqual([...prompt, ...tokenizer.encode({ kind: "text", text: "fine" })]);
  });

  test("keep the block hashes of a chat that grows", () => {
    const chat = fc.array(message, { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(chat, fc.array(message, { maxLength: 3 }), (before, after) => {
        const first = tokenizer.encode({ kind: "chat", messages: before });
        const answer = { role: "assistant", content: "fine" };
        const next = tokenizer.encode({ kind: "chat", messages: [...before, answer, ...after] });
        const hashes = sequenceHashes(first, 4);
        expect(sequenceHashes(next, 4).subarray(0, hashes.length)).toEqual(hashes);
      }),
    );
  });

  test("keep all but the last block of a text that grows", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), fc.string(), (before, after) => {
        const hashes = sequenceHashes(tokenizer.encode({ kind: "text", text: before }), 4);
        const next = sequenceHashes(tokenizer.encode({ kind: "text", text: before + after }), 4);
        const kept = Math.max(0, hashes.length - 2);
        expect(next.subarray(0, kept)).toEqual(hashes.subarray(0, kept));
      }),
    );
  });

  test("tell roles and texts apart", () => {
    const chat = (role: string, content: string): number[] => [
      ...tokenizer.encode({ kind: "chat", messages: [{ role, content }] }),
    ];
    expect(chat("user", "abcd")).not.toEqual(chat("system", "abcd"));
    expect(chat("user", "abcd")).not.toEqual(chat("user", "abce"));
  });

  test("pass tokens through", () => {
    const tokens = Uint32Array.of(7);
    expect(tokenizer.encode({ kind: "tokens", tokens })).toBe(tokens);
  });
});
