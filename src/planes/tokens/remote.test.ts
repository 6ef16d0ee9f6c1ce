import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { TextChunkTokenizer } from "../../tokenizer/text-chunk-tokenizer.ts";
import type { TokenizerPrompt } from "../../tokenizer/types.ts";
import { RemoteTokens, type RemoteTokensOptions } from "./remote.ts";

const PROMPT: TokenizerPrompt = { kind: "text", text: "how many tokens are these" };
const guess = new TextChunkTokenizer();
const open: { close(): unknown }[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((thing) => thing.close()));
});

async function engine(
  answer: (body: Record<string, unknown>, response: ServerResponse) => void,
  options: Partial<RemoteTokensOptions> = {},
): Promise<{ tokens: RemoteTokens; bodies: Record<string, unknown>[] }> {
  const bodies: Record<string, unknown>[] = [];
  const server: Server = createServer((request: IncomingMessage, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    request.on("end", () => {
      bodies.push(JSON.parse(text) as Record<string, unknown>);
      answer(bodies[bodies.length - 1], response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const tokens = new RemoteTokens({ url, dialect: "vllm", ...options });
  open.push(tokens, server);
  return { tokens, bodies };
}

const three = (_: unknown, response: ServerResponse): void => {
  response.end(JSON.stringify({ count: 3, max_model_len: 4096, tokens: [5, 6, 7] }));
};

describe("an engine's /tokenize", () => {
  test("is asked with the engine's key, as it is by then", async () => {
    let key = "Bearer first";
    const guarded = (_: unknown, response: ServerResponse): void => {
      if (response.req.headers.authorization === key) three(_, response);
      else response.writeHead(401).end('{"error":"Unauthorized"}');
    };
    const { tokens } = await engine(guarded, { authorization: () => key });
    expect(await tokens.tokensOf(PROMPT)).toEqual(Uint32Array.of(5, 6, 7));
    key = "Bearer second";
    expect(await tokens.tokensOf(PROMPT)).toEqual(Uint32Array.of(5, 6, 7));
    expect(tokens.counts.guessed).toBe(0);
  });

  test("is asked in vLLM's words", async () => {
    const { tokens, bodies } = await engine(three, { model: "m" });
    expect(await tokens.tokensOf(PROMPT)).toEqual(Uint32Array.of(5, 6, 7));
    const source = { role: "user", content: [{ type: "text", text: "hi" }] };
    await tokens.tokensOf({
      kind: "chat",
      messages: [{ role: "user", content: "hi", source }],
      tools: [{ type: "function" }],
      templateArguments: { enable_thinking: false },
    });
    expect(bodies).toEqual([
      { model: "m", prompt: PROMPT.text, add_special_tokens: true },
      {
        model: "m",
        messages: [source],
        add_generation_prompt: true,
        tools: [{ type: "function" }],
        chat_template_kwargs: { enable_thinking: false },
      },
    ]);
  });

  test("is asked in SGLang's words, which know texts alone", async () => {
    const template = "{% for m in messages %}[{{ m.content }}]{% endfor %}";
    const { tokens, bodies } = await engine(three, {
      dialect: "sglang",
      chatTemplate: { template, specialTokens: {} },
    });
    await tokens.tokensOf({ kind: "chat", messages: [{ role: "user", content: "hi" }] });
    expect(bodies).toEqual([{ prompt: "[hi]", add_special_tokens: false }]);
  });

  test("is asked to write a chat itself that takes its template long, and where it cannot the prompt gets a guess", async () => {
    const messages = Array.from({ length: 1000 }, () => ({ role: "user", content: "hi" }));
    const prompt: TokenizerPrompt = { kind: "chat", messages };
    const chatTemplate = { template: "{% for m in messages %}[{{ m.content }}]{% endfor %}", specialTokens: {} };
    const vllm = await engine(three, { chatTemplate });
    expect(await vllm.tokens.tokensOf(prompt)).toEqual(Uint32Array.of(5, 6, 7));
    expect(vllm.bodies).toEqual([{ messages, add_generation_prompt: true }]);
    const sglang = await engine(three, { dialect: "sglang", chatTemplate });
    expect(await sglang.tokens.tokensOf(prompt)).toEqual(guess.encode(prompt));
    expect([sglang.bodies, sglang.tokens.counts.guessed]).toEqual([[], 1]);
  });

  test("that fails is left alone for a while, and prompts get a guess", async () => {
    let nowMs = 0;
    let isUp = false;
    const { tokens, bodies } = await engine(
      (body, response) => (isUp ? three(body, response) : response.writeHead(500).end()),
      {
        restMs: 100,
        nowMs: () => nowMs,
      },
    );
    expect(await tokens.tokensOf(PROMPT)).toEqual(guess.encode(PROMPT));
    isUp = true;
    expect(tokens.tokensOf(PROMPT)).toEqual(guess.encode(PROMPT));
    expect(bodies).toHaveLength(1);
    nowMs = 100;
    expect(await tokens.tokensOf(PROMPT)).toEqual(Uint32Array.of(5, 6, 7));
    expect(tokens.counts.guessed).toBe(2);
  });

  test("that hangs keeps no prompt waiting for longer than one, however many wait for their turn", async () => {
    const { tokens, bodies } = await engine(() => {}, { timeoutMs: 50 });
    const prompts = Array.from({ length: 64 }, () => tokens.tokensOf(PROMPT));
    for (const made of prompts) expect(await made).toEqual(guess.encode(PROMPT));
    expect(bodies.length).toBeLessThan(prompts.length / 2);
  });

  test.each([400, 404, 422])("that refuses a prompt with %i is asked about the next", async (status) => {
    const { tokens, bodies } = await engine(
      (body, response) =>
        body["prompt"] === "bad" ? void response.writeHead(status).end("{}") : three(body, response),
      { nowMs: () => 0 },
    );
    const bad: TokenizerPrompt = { kind: "text", text: "bad" };
    expect(await tokens.tokensOf(bad)).toEqual(guess.encode(bad));
    expect(await tokens.tokensOf(PROMPT)).toEqual(Uint32Array.of(5, 6, 7));
    expect(bodies).toHaveLength(2);
    expect(tokens.counts.guessed).toBe(1);
  });

  test.each([408, 429, 503])("that has no time and says so with %i is left alone", async (status) => {
    const { tokens, bodies } = await engine((_, response) => void response.writeHead(status).end(), { nowMs: () => 0 });
    await tokens.tokensOf(PROMPT);
    await tokens.tokensOf(PROMPT);
    expect(bodies).toHaveLength(1);
  });

  test.each([
    ["no JSON", "tokens"],
    ["no tokens", JSON.stringify({ count: 2 })],
    ["tokens that are none", JSON.stringify({ tokens: ["a"] })],
  ])("that answers with %s counts as failed", async (_, answer) => {
    const { tokens } = await engine((__, response) => void response.end(answer));
    expect(await tokens.tokensOf(PROMPT)).toEqual(guess.encode(PROMPT));
  });

  test("that hangs up counts as failed", async () => {
    const { tokens } = await engine((_, response) => void response.destroy());
    expect(await tokens.tokensOf(PROMPT)).toEqual(guess.encode(PROMPT));
  });
});
