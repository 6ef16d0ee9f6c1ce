import { type Server, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { InlineTokens } from "../../src/planes/tokens/inline.ts";
import { ModelTokens } from "../../src/planes/tokens/model.ts";
import { TokenizerThread } from "../../src/planes/tokens/model/thread.ts";
import { RemoteTokens, type TokenizeDialect } from "../../src/planes/tokens/remote.ts";
import type { PromptTokens } from "../../src/planes/tokens/types.ts";
import { readTokenizerJson } from "../../src/tokenizer/bpe/tokenizer-json.ts";
import { ChatTemplate } from "../../src/tokenizer/template/chat-template.ts";
import { ModelTokenizer } from "../../src/tokenizer/model-tokenizer.ts";
import { TextChunkTokenizer } from "../../src/tokenizer/text-chunk-tokenizer.ts";
import type { ChatMessage, PromptTokenizer, TokenizerPrompt } from "../../src/tokenizer/types.ts";
import { WordTokenizer } from "../../src/tokenizer/word-tokenizer.ts";
import { qwenTemplate, trainedFile } from "../support/model-files.ts";

const definition = readTokenizerJson(trainedFile("a man a plan a canal, panama; a man, a plan ".repeat(4), 40));
const chatTemplate = { template: qwenTemplate(), specialTokens: {} };
const engine = new ModelTokenizer({ definition, chatTemplate });

/** An engine's `/tokenize`, with the same tokenizer inside. */
function tokenizeServer(dialect: TokenizeDialect): Server {
  const template = new ChatTemplate(chatTemplate);
  return createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    request.on("end", () => {
      const body = JSON.parse(text) as { prompt?: string; messages?: ChatMessage[] };
      const written =
        body.messages !== undefined && dialect === "vllm"
          ? template.render({ kind: "chat", messages: body.messages })
          : body.prompt;
      if (request.url !== "/tokenize" || written === undefined) {
        response.writeHead(400).end();
        return;
      }
      const tokens = [...engine.encode({ kind: "text", text: written })];
      response.end(JSON.stringify({ count: tokens.length, max_model_len: 4096, tokens }));
    });
  });
}

async function remote(dialect: TokenizeDialect): Promise<{ tokens: PromptTokens; stop: () => void }> {
  const server = tokenizeServer(dialect);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const tokens = new RemoteTokens({ url, dialect, ...(dialect === "sglang" && { chatTemplate }) });
  return { tokens, stop: () => server.close() };
}

const here = (tokens: PromptTokens): Promise<{ tokens: PromptTokens; stop: () => void }> =>
  Promise.resolve({ tokens, stop: () => {} });

const THREAD = new URL("../support/tokenizer-thread.mjs", import.meta.url);
const elsewhere = (): TokenizerThread => new TokenizerThread({ definition, chatTemplate }, THREAD);

const ADAPTERS: readonly [string, () => Promise<{ tokens: PromptTokens; stop: () => void }>, PromptTokenizer][] = [
  ["words", () => here(new InlineTokens(new WordTokenizer(), "exact")), new WordTokenizer()],
  ["chunks of text", () => here(new InlineTokens(new TextChunkTokenizer(), "approximate")), new TextChunkTokenizer()],
  ["a model on the event loop", () => here(new ModelTokens({ definition, chatTemplate })), engine],
  [
    "a model in a thread",
    () => {
      const threads = { elsewhere: elsewhere(), wholeElsewhere: elsewhere() };
      return here(new ModelTokens({ definition, chatTemplate, offloadChars: -1, ...threads }));
    },
    engine,
  ],
  ["vLLM's /tokenize", () => remote("vllm"), engine],
  ["SGLang's /tokenize", () => remote("sglang"), engine],
];

const PROMPTS: readonly [string, TokenizerPrompt][] = [
  ["a text", { kind: "text", text: "a man, a plan, 日本 \n\n a canal" }],
  ["an empty text", { kind: "text", text: "" }],
  ["a long text", { kind: "text", text: "a man, a plan. ".repeat(1_000) }],
  ["a chat", { kind: "chat", messages: [{ role: "user", content: "a plan?" }] }],
  ["tokens", { kind: "tokens", tokens: Uint32Array.of(3, 2, 1) }],
];

describe.each(ADAPTERS)("prompt tokens by %s", (name, open, tokenizer) => {
  let tokens: PromptTokens;
  let stop: () => void;

  beforeAll(async () => {
    ({ tokens, stop } = await open());
  });

  afterAll(async () => {
    await tokens.close();
    stop();
  });

  test.each(PROMPTS)("are its tokenizer's for %s, the first time and the second", async (_, prompt) => {
    expect(await tokens.tokensOf(prompt)).toEqual(tokenizer.encode(prompt));
    expect(await tokens.tokensOf(prompt)).toEqual(tokenizer.encode(prompt));
    expect(tokens.counts.guessed).toBe(0);
  });

  test("keep their order apart when many are asked for at once", async () => {
    const prompts = Array.from({ length: 20 }, (_, i): TokenizerPrompt => ({
      kind: "text",
      text: `plan ${i}`.repeat(i * 40),
    }));
    const all = await Promise.all(prompts.map(async (prompt) => tokens.tokensOf(prompt)));
    expect(all).toEqual(prompts.map((prompt) => tokenizer.encode(prompt)));
    expect(tokens.counts.offloaded > 0).toBe(name === "a model in a thread");
  });
});
