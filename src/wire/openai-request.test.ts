import { describe, expect, test } from "vitest";
import { parseGenerationRequest, withCacheSalt, withUsageAsked } from "./openai-request.ts";

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

  test("takes the limit that is given, the newer name's before the older one's", () => {
    const limitOf = (limits: object): number | undefined =>
      parseGenerationRequest("chat", { model: "m", messages: MESSAGES, ...limits }).request?.maxOutputTokens;
    expect(limitOf({ max_completion_tokens: null, max_tokens: 4 })).toBe(4);
    expect(limitOf({ max_completion_tokens: 3, max_tokens: null })).toBe(3);
    expect(limitOf({ max_completion_tokens: 3, max_tokens: 4 })).toBe(3);
    expect(limitOf({ max_completion_tokens: null, max_tokens: null })).toBeUndefined();
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
        { role: "user", content: `look\n${JSON.stringify(image)}`, source: messages[0] },
        { role: "assistant", content: ` ${JSON.stringify(calls)}`, source: messages[1] },
      ],
    });
  });

  test("keeps what else a model's template makes tokens of", () => {
    const tools = [{ type: "function", function: { name: "f" } }];
    const template = { chat_template_kwargs: { enable_thinking: false }, add_generation_prompt: false };
    expect(
      parseGenerationRequest("chat", { model: "m", messages: MESSAGES, tools, ...template }).request?.prompt,
    ).toEqual({
      kind: "chat",
      messages: MESSAGES,
      tools,
      templateArguments: { enable_thinking: false },
      addsGenerationPrompt: false,
    });
    const wrong = { tools: "f", chat_template_kwargs: 1, add_generation_prompt: "no" };
    expect(parseGenerationRequest("chat", { model: "m", messages: MESSAGES, ...wrong }).request?.prompt).toEqual({
      kind: "chat",
      messages: MESSAGES,
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

  test("takes a completion that asks for no tokens, as whoever wants the prompt scored does", () => {
    const body = { model: "m", prompt: "x", max_tokens: 0, echo: true, logprobs: 1 };
    // The engine computes one all the same, and keeps it to itself.
    expect(parseGenerationRequest("completion", body).request?.maxOutputTokens).toBe(1);
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
    ["completion", { model: "m", prompt: "x", max_tokens: -1 }, "max_tokens"],
    ["completion", { model: "m", prompt: [] }, "prompt"],
    ["completion", { model: "m", prompt: ["a", "b"] }, "prompt"],
    ["completion", { model: "m", prompt: [1, -1] }, "prompt"],
  ] as const)("refuses the %s body %j and names the field %s", (kind, body, param) => {
    const { problem } = parseGenerationRequest(kind, body);
    expect(problem).toEqual({ param, message: expect.stringContaining(param) as string });
  });
});

describe("a stream whose usage is asked for", () => {
  const asked = (text: string): string =>
    Buffer.from(withUsageAsked(Buffer.from(text), JSON.parse(text) as object)).toString();

  test("keeps everything else byte by byte, numbers too large for JavaScript included", () => {
    const text = ' {"model":"m", "seed":12345678901234567890,"stream" : true}';
    expect(asked(text)).toBe(
      '{"stream_options":{"include_usage":true},"model":"m", "seed":12345678901234567890,"stream" : true}',
    );
  });

  test.each([
    ["null", { include_usage: true }],
    ['"none"', { include_usage: true }],
    ['{"include_usage":false,"other":1}', { include_usage: true, other: 1 }],
    // vLLM's usage with every event, which means nothing without the other and could not be taken out again.
    ['{"continuous_usage_stats":true,"other":1}', { include_usage: true, other: 1 }],
  ])("with the options %s keeps the others", (options, expected) => {
    const text = `{"model":"m","stream_options":${options},"stream":true}`;
    expect(JSON.parse(asked(text))).toEqual({ model: "m", stream: true, stream_options: expected });
  });
});

describe("a body that is given a salt", () => {
  const salted = (text: string): string =>
    Buffer.from(withCacheSalt(Buffer.from(text), JSON.parse(text) as object, 'key:"a"')).toString();

  test("keeps everything else byte by byte", () => {
    expect(salted(' {"model":"m", "seed":12345678901234567890}')).toBe(
      '{"cache_salt":"key:\\"a\\"","model":"m", "seed":12345678901234567890}',
    );
  });

  test.each(['"theirs"', "null", '""', "7"])("has no other, not even %s", (theirs) => {
    const text = `{"cache_salt":"first","model":"m","cache\\u005fsalt":${theirs}}`;
    expect(salted(text).match(/cache.{0,6}salt/g)).toHaveLength(1);
    expect(JSON.parse(salted(text))).toEqual({ model: "m", cache_salt: 'key:"a"' });
  });
});
