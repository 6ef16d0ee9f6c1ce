import { describe, expect, test } from "vitest";
import { parseGenerationRequest } from "./openai-request.ts";

const MESSAGES = [{ role: "user", content: "hi" }];

describe("requests in OpenAI's form", () => {
  test("gives what routing needs of a chat and leaves the rest unread", () => {
    const { request } = parseGenerationRequest("chat", {
      model: "m",
      messages: [{ role: "system", content: "be brief" }, ...MESSAGES],
      stream: true,
      stream_options: { include_usage: true },
      max_completion_tokens: 7,
      max_tokens: 9,
      cache_salt: "tenant",
      temperature: "anything",
    });
    expect(request).toEqual({
      kind: "chat",
      model: "m",
      prompt: { kind: "chat", messages: [{ role: "system", content: "be brief" }, ...MESSAGES] },
      isStreaming: true,
      includesUsage: true,
      maxOutputTokens: 7,
      cacheSalt: "tenant",
    });
  });

  test("takes fields that are null as absent", () => {
    const body = { model: "m", messages: MESSAGES, stream: null, max_tokens: null, cache_salt: null };
    expect(parseGenerationRequest("chat", body).request).toMatchObject({
      isStreaming: false,
      maxOutputTokens: undefined,
      cacheSalt: undefined,
    });
  });

  test("puts the parts of a message together, images and tool calls by their JSON", () => {
    const image = { type: "image_url", image_url: { url: "http://images/1" } };
    const calls = [{ id: "1", function: { name: "f", arguments: "{}" } }];
    const messages = [
      { role: "user", content: [{ type: "text", text: "look" }, image] },
      { role: "assistant", content: null, tool_calls: calls },
    ];
    const { request } = parseGenerationRequest("chat", { model: "m", messages });
    expect(request?.prompt).toEqual({
      kind: "chat",
      messages: [
        { role: "user", content: `look\n${JSON.stringify(image)}` },
        { role: "assistant", content: ` ${JSON.stringify(calls)}` },
      ],
    });
  });

  test.each([
    ["once upon", { kind: "text", text: "once upon" }],
    [["once upon"], { kind: "text", text: "once upon" }],
    [[1, 2, 4294967295], { kind: "tokens", tokens: Uint32Array.of(1, 2, 4294967295) }],
    [[[1, 2]], { kind: "tokens", tokens: Uint32Array.of(1, 2) }],
  ])("takes the completion prompt %j", (prompt, expected) => {
    expect(parseGenerationRequest("completion", { model: "m", prompt }).request?.prompt).toEqual(expected);
  });

  test.each([
    ["chat", [], "body"],
    ["chat", null, "body"],
    ["chat", { messages: MESSAGES }, "model"],
    ["chat", { model: "m" }, "messages"],
    ["chat", { model: "m", messages: [] }, "messages"],
    ["chat", { model: "m", messages: [{ content: "x" }] }, "messages"],
    ["chat", { model: "m", messages: [{ role: "user", content: 3 }] }, "messages"],
    ["chat", { model: "m", messages: MESSAGES, stream: "yes" }, "stream"],
    ["chat", { model: "m", messages: MESSAGES, max_tokens: 0.5 }, "max_tokens"],
    ["chat", { model: "m", messages: MESSAGES, max_completion_tokens: 0 }, "max_completion_tokens"],
    ["chat", { model: "m", messages: MESSAGES, cache_salt: 1 }, "cache_salt"],
    ["completion", { model: "m" }, "prompt"],
    ["completion", { model: "m", prompt: [] }, "prompt"],
    ["completion", { model: "m", prompt: ["a", "b"] }, "prompt"],
    ["completion", { model: "m", prompt: [1, -1] }, "prompt"],
  ] as const)("refuses the %s body %j and names the field %s", (kind, body, param) => {
    const { problem } = parseGenerationRequest(kind, body);
    expect(problem).toEqual({ param, message: expect.stringContaining(param) as string });
  });
});
