import { describe, expect, test } from "vitest";
import { continuationObstacle, continuedBody, tokensLeft } from "./openai-continuation.ts";

const CHAT = { model: "m", messages: [{ role: "user", content: "hi" }], stream: true };
const TEXT = { model: "m", prompt: "once upon", stream: true };
const SAID = { text: " a time", tokens: 2 };

describe("asking for the rest of an answer", () => {
  test("adds what was said to a text", () => {
    expect(continuedBody("completion", { ...TEXT, temperature: 0 }, SAID)).toEqual({
      ...TEXT,
      temperature: 0,
      prompt: "once upon a time",
    });
    expect(continuedBody("completion", { ...TEXT, prompt: ["once upon"] }, SAID)["prompt"]).toBe("once upon a time");
  });

  test("leaves the answer of a chat open", () => {
    expect(continuedBody("chat", CHAT, SAID)).toEqual({
      ...CHAT,
      messages: [...CHAT.messages, { role: "assistant", content: " a time" }],
      continue_final_message: true,
      add_generation_prompt: false,
    });
  });

  test("goes on with a message that the client left open itself", () => {
    const messages = [...CHAT.messages, { role: "assistant", content: "Well,", name: "x" }];
    const body = { ...CHAT, messages, continue_final_message: true, add_generation_prompt: false };
    expect(continuedBody("chat", body, SAID)).toEqual({
      ...body,
      messages: [...CHAT.messages, { role: "assistant", content: "Well, a time", name: "x" }],
    });
  });

  test("asks the same again where nothing was said", () => {
    expect(continuedBody("chat", CHAT, { text: "", tokens: 0 })).toEqual(CHAT);
  });

  test("takes what was said off every limit", () => {
    const body = { ...TEXT, max_tokens: 10, max_completion_tokens: 9, min_tokens: 1 };
    expect(continuedBody("completion", body, SAID)).toMatchObject({
      max_tokens: 8,
      max_completion_tokens: 7,
      min_tokens: 0,
    });
    expect([tokensLeft(body, SAID), tokensLeft(TEXT, SAID)]).toEqual([7, undefined]);
    expect(tokensLeft({ max_tokens: 2 }, SAID)).toBe(0);
  });
});

describe("what keeps an answer from being continued", () => {
  test.each([
    ["several-choices", { n: 2 }],
    ["several-choices", { best_of: 3 }],
    ["logprobs", { logprobs: true }],
    ["logprobs", { logprobs: 0 }],
    ["constrained-output", { response_format: { type: "json_object" } }],
    ["constrained-output", { guided_json: {} }],
    ["constrained-output", { structured_outputs: { regex: "a+" } }],
    ["constrained-output", { tool_choice: "required" }],
    ["constrained-output", { tool_choice: { type: "function", function: { name: "f" } } }],
    ["echo-or-suffix", { echo: true }],
    ["echo-or-suffix", { suffix: "the end" }],
    ["unusual-prompt", { truncate_prompt_tokens: 10 }],
  ])("%s: %j", (obstacle, fields) => {
    for (const [kind, body] of [["chat", CHAT] as const, ["completion", TEXT] as const]) {
      expect(continuationObstacle(kind, { ...body, ...fields })).toBe(obstacle);
    }
  });

  test("a prompt of tokens, and a chat that is not to be answered", () => {
    expect(continuationObstacle("completion", { ...TEXT, prompt: [1, 2] })).toBe("token-prompt");
    expect(continuationObstacle("chat", { ...CHAT, add_generation_prompt: false })).toBe("unusual-prompt");
    expect(continuationObstacle("chat", { ...CHAT, continue_final_message: true })).toBe("unusual-prompt");
  });

  test("nothing in ordinary requests, with fields that say the usual", () => {
    const usual = {
      n: 1,
      best_of: null,
      logprobs: false,
      response_format: { type: "text" },
      echo: false,
      tool_choice: "auto",
      tools: [{ type: "function", function: { name: "f" } }],
      stop: ["x"],
      seed: 7,
    };
    expect(continuationObstacle("chat", { ...CHAT, ...usual })).toBeUndefined();
    expect(continuationObstacle("completion", { ...TEXT, ...usual })).toBeUndefined();
  });
});
