import { describe, expect, test } from "vitest";
import type { Introduction } from "../../../planes/discovery/parts/self-description.ts";
import { readSettings } from "./settings.ts";
import { settled } from "./settled-settings.ts";

const ours = (tokenizer: string, blockTokens = 32): Introduction => ({
  kind: "described",
  description: { worker: { name: "a", url: "http://a:1", blockTokens }, tokenizer },
});

async function settledWith(
  given: Record<string, unknown>,
  answers: Readonly<Record<string, Introduction>> = {},
): Promise<{ blockTokens: number; tokenizer: string; notes: readonly string[]; asked: string[] }> {
  const asked: string[] = [];
  const { settings, notes } = await settled(readSettings(given), (url) => {
    asked.push(url);
    return Promise.resolve(answers[url] ?? { kind: "unreachable" });
  });
  const { blockTokens, tokenizer } = settings;
  return { blockTokens, tokenizer, notes, asked };
}

const TWO = ["http://a:1", "http://b:1"];

describe("what the gateway asks its workers", () => {
  test("is how large their blocks and what their tokens are", async () => {
    const answers = { "http://b:1": ours("word") };
    expect(await settledWith({ worker: TWO }, answers)).toEqual({
      blockTokens: 32,
      tokenizer: "word",
      notes: [],
      asked: TWO,
    });
  });

  test("leaves tokens that it does not have itself to the worker that has them", async () => {
    const { tokenizer } = await settledWith({ worker: TWO }, { "http://a:1": ours("/models/qwen") });
    expect(tokenizer).toBe("vllm+http://a:1");
  });

  test("does not matter where it was written down", async () => {
    const answers = { "http://a:1": ours("word") };
    expect(await settledWith({ worker: TWO, blockTokens: 64, tokenizer: "none" }, answers)).toMatchObject({
      blockTokens: 64,
      tokenizer: "none",
      asked: [],
    });
    expect(await settledWith({ worker: TWO, blockTokens: 64 }, answers)).toMatchObject({
      blockTokens: 64,
      tokenizer: "word",
    });
  });

  test("is not known of foreign engines, which it says unless nobody wants to hear events", async () => {
    const answers: Record<string, Introduction> = { "http://a:1": { kind: "foreign" } };
    const guessed = await settledWith({ worker: TWO }, answers);
    expect(guessed).toMatchObject({ blockTokens: 16, tokenizer: "none" });
    expect(guessed.notes[0]).toContain("--tokenizer");
    expect((await settledWith({ worker: TWO, eventPlane: "none" }, answers)).notes).toEqual([]);
  });

  test("is known of workers that register", async () => {
    expect(await settledWith({ discover: "registration" })).toMatchObject({ tokenizer: "word", notes: [] });
  });
});
