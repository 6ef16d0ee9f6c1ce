/** What the router learns from answers of workers without KV events, with real connections to workers that follow a script. */
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { sequenceHashes } from "../core/hash.ts";
import { createPolicy } from "../core/policy/registry.ts";
import { Router } from "../core/router.ts";
import { MemoryEventPlane } from "../planes/event/memory.ts";
import type { EventPlane } from "../planes/event/types.ts";
import { InlineTokens } from "../planes/tokens/inline.ts";
import { RemoteTokens } from "../planes/tokens/remote.ts";
import type { PromptTokens } from "../planes/tokens/types.ts";
import { WordTokenizer } from "../tokenizer/word-tokenizer.ts";
import { SSE_DONE, SseScanner, sseEvent } from "../wire/sse.ts";
import { HeardAnswer } from "./heard-answer.ts";
import { LocalDecider } from "./local-decider.ts";
import { type Script, scriptedWorker } from "./scripted-worker.test-support.ts";
import { Gateway } from "./server.ts";

const BLOCK_TOKENS = 4;
const TOKENS = new InlineTokens(new WordTokenizer(), "exact");
const QUESTION = { role: "user", content: "what is the largest planet of all" };
const WORDS = ["it", " is", " Jupiter", " by", " far", " and", " then", " some"];
const ANSWER = { role: "assistant", content: WORDS.join("") };

function tokensOf(messages: readonly { role: string; content: string }[], continuesFinalMessage = false): Uint32Array {
  return new WordTokenizer().encode({ kind: "chat", messages, continuesFinalMessage });
}

function delta(fields: object): string {
  return sseEvent(JSON.stringify({ id: "x", choices: [{ index: 0, delta: fields, finish_reason: null }] }));
}

function offered(tokens: Uint32Array): { promptTokens: number; sequence: Uint32Array; blocks: number } {
  const sequence = sequenceHashes(tokens, BLOCK_TOKENS);
  return { promptTokens: tokens.length, sequence, blocks: Math.floor(tokens.length / BLOCK_TOKENS) };
}

function heard(body: object = {}): HeardAnswer {
  const asked = { model: "m", messages: [QUESTION], ...body };
  const prompt = { kind: "chat", body: asked, identity: {}, tokens: TOKENS, blockTokens: BLOCK_TOKENS } as const;
  return new HeardAnswer(prompt, offered(tokensOf([QUESTION])));
}

function hearStream(answer: HeardAnswer, ...events: readonly string[]): void {
  const scanner = new SseScanner({ listener: answer.listener });
  for (const event of events) scanner.relay(bytes(event));
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

describe("an answer that is heard", () => {
  test("is kept with its prompt as the next turn brings them back, but for the last token", () => {
    const answer = heard();
    hearStream(answer, ...WORDS.map((content) => delta({ content })));
    const kept = answer.keptBlocks();
    const computed = tokensOf([QUESTION, ANSWER], true).length - 1;
    expect(kept?.blocks).toBe(Math.floor(computed / BLOCK_TOKENS));
    const nextTurn = sequenceHashes(tokensOf([QUESTION, ANSWER, QUESTION]), BLOCK_TOKENS);
    expect(kept?.sequence).toEqual(nextTurn.subarray(0, 2 * (kept?.blocks ?? 0)));
  });

  test("is the same in one piece", () => {
    const streamed = heard();
    hearStream(streamed, ...WORDS.map((content) => delta({ content })));
    const whole = heard();
    whole.hear(bytes(JSON.stringify({ choices: [{ index: 0, message: ANSWER, finish_reason: "stop" }], usage: {} })));
    expect(whole.keptBlocks()).toEqual(streamed.keptBlocks());
  });

  test.each([
    ["thoughts", delta({ reasoning_content: "hm" }) + delta({ content: "yes" })],
    ["thoughts under their other name", delta({ reasoning: "hm" }) + delta({ content: "yes" })],
    ["thoughts inside the text", delta({ content: "<think>hm</think>" }) + delta({ content: "yes" })],
    ["calls of tools", delta({ content: "let me see" }) + delta({ tool_calls: [{ index: 0, id: "call" }] })],
    ["calls in the event of a text", delta({ content: "let me see", tool_calls: [{ index: 0, id: "call" }] })],
    ["a call of a function", delta({ function_call: { name: "look" } })],
    ["nothing", delta({ role: "assistant", content: "" })],
  ])("is not kept with %s in it, which templates bring back in their own way", (_, events) => {
    const answer = heard();
    hearStream(answer, events);
    expect(answer.keptBlocks()).toBeUndefined();
  });

  test("is kept where engines write down that there were no thoughts and no calls", () => {
    const answer = heard();
    hearStream(
      answer,
      delta({ content: "yes of course", reasoning_content: null, reasoning: "", tool_calls: [], function_call: null }),
    );
    expect(answer.keptBlocks()).toBeDefined();
  });

  test("is not kept where there are several, or where its prompt is cut", () => {
    for (const body of [{ n: 2 }, { truncate_prompt_tokens: 5 }]) {
      const answer = heard(body);
      hearStream(answer, delta({ content: "yes" }));
      expect(answer.keptBlocks()).toBeUndefined();
    }
  });

  test("is kept whatever does not change its text", () => {
    const answer = heard({ logprobs: true, response_format: { type: "json_object" } });
    answer.hear(bytes(delta({ content: "yes" })));
    expect(answer.keptBlocks()).toBeDefined();
  });

  test("is what its tokens say it is, also where it is too short to fill a block and they are not counted", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 6 }), (words) => {
        const content = words.join("");
        const answer = heard();
        hearStream(answer, delta({ content }));
        const computed = tokensOf([QUESTION, { role: "assistant", content }], true).subarray(0, -1);
        const { sequence, blocks } = offered(computed);
        expect(answer.keptBlocks()).toEqual({ sequence, blocks });
      }),
    );
    const unasked = { tokensOf: (): never => expect.fail("nobody needs these tokens") };
    const prompt = {
      kind: "chat",
      body: { messages: [QUESTION] },
      identity: {},
      tokens: unasked,
      blockTokens: 64,
    } as const;
    const short = new HeardAnswer(prompt, { promptTokens: 20, sequence: new Uint32Array(0), blocks: 0 });
    hearStream(short, delta({ content: "yes" }));
    expect(short.keptBlocks()).toEqual({ sequence: new Uint32Array(0), blocks: 0 });
  });

  test("is not waited for where its tokens come later", () => {
    const later = { tokensOf: async (): Promise<Uint32Array> => tokensOf([QUESTION]) };
    const body = { model: "m", messages: [QUESTION] };
    const prompt = { kind: "chat", body, identity: {}, tokens: later, blockTokens: BLOCK_TOKENS } as const;
    const answer = new HeardAnswer(prompt, offered(tokensOf([QUESTION])));
    answer.hear(bytes(delta({ content: "yes" })));
    expect(answer.keptBlocks()).toBeUndefined();
  });
});

const open: { close(): unknown }[] = [];

afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close();
});

/** Events of a worker that holds nothing and has nothing to tell. */
function silentEvents(): EventPlane {
  const plane = new MemoryEventPlane();
  plane.publisher("worker-1", { snapshot: () => ({ incarnation: "first", lastEventId: -1, runs: [] }) });
  return plane;
}

async function gatewayWith(
  script: Script,
  events?: EventPlane,
  tokens: Pick<PromptTokens, "tokensOf"> = TOKENS,
): Promise<{ url: string; router: Router }> {
  const worker = await scriptedWorker(script);
  const router = new Router(createPolicy("kv-cost"), { blockTokens: BLOCK_TOKENS, maxReplicas: 2, maxBlocks: 1024 });
  const decider = new LocalDecider({ router, ...(events !== undefined && { events: () => events }) });
  decider.fleet.appeared({ name: "worker-1", url: worker.url });
  const gateway = new Gateway({ decider, blockTokens: BLOCK_TOKENS, tokens });
  open.push(worker, { close: () => decider.close() }, { close: () => gateway.close(0) });
  return { url: await gateway.listen(), router };
}

const streams: Script = (_body, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(
    delta({ role: "assistant", content: "" }) + WORDS.map((content) => delta({ content })).join("") + SSE_DONE,
  );
};

const answersWhole: Script = (_body, response) => {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ choices: [{ index: 0, message: ANSWER, finish_reason: "stop" }] }));
};

async function ask(url: string, messages: readonly object[], stream: boolean): Promise<void> {
  const body = JSON.stringify({ model: "m", messages, stream });
  const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", body });
  await response.text();
}

describe("the next turn of a conversation", () => {
  const nextTurn = [QUESTION, ANSWER, { role: "user", content: "and the smallest" }];
  const ofPrompt = Math.floor(tokensOf([QUESTION]).length / BLOCK_TOKENS) * BLOCK_TOKENS;
  const ofBoth = Math.floor((tokensOf([QUESTION, ANSWER], true).length - 1) / BLOCK_TOKENS) * BLOCK_TOKENS;

  async function predictedAfter(script: Script, stream: boolean, events?: EventPlane): Promise<number | undefined> {
    const { url, router } = await gatewayWith(script, events);
    await ask(url, [QUESTION], stream);
    await ask(url, nextTurn, stream);
    return router.log.latest(1)[0]?.predictedCachedTokens;
  }

  test("is expected to find the answer where it was given, streamed or whole", async () => {
    expect(ofBoth).toBeGreaterThan(ofPrompt);
    expect(await predictedAfter(streams, true)).toBe(ofBoth);
    expect(await predictedAfter(answersWhole, false)).toBe(ofBoth);
  });

  test("is not made tokens of beforehand where that takes long", async () => {
    const prompts: number[] = [];
    const counted: Pick<PromptTokens, "tokensOf"> = {
      tokensOf: (prompt) => {
        if (prompt.kind === "chat") prompts.push(prompt.messages.length);
        return TOKENS.tokensOf(prompt);
      },
    };
    const { url } = await gatewayWith(streams, undefined, counted);
    await ask(url, [QUESTION], true);
    await ask(
      url,
      Array.from({ length: 1000 }, () => QUESTION),
      true,
    );
    expect(prompts).toEqual([1, 2, 1000]);
  });

  test("is not asked for beforehand of an engine that is asked for all tokens: its answer would come too late", async () => {
    const prompts: string[] = [];
    const tokenizer = await scriptedWorker((body, response) => {
      prompts.push(body);
      response.end('{"tokens":[1,2,3,4,5,6,7,8]}');
    });
    const remote = new RemoteTokens({ url: tokenizer.url, dialect: "vllm" });
    open.push(tokenizer, remote);
    const { url } = await gatewayWith(streams, undefined, remote);
    await ask(url, [QUESTION], true);
    await ask(url, nextTurn, true);
    expect(prompts.map((body) => (JSON.parse(body) as { messages: unknown[] }).messages.length)).toEqual([1, 3]);
  });

  test("is left to the events of a worker that sends them", async () => {
    expect(await predictedAfter(streams, true, silentEvents())).toBe(ofPrompt);
  });
});
