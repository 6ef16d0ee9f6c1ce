/** When a stream is over: with its end mark, whatever the worker and its connection do afterwards. */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { createPolicy } from "../core/policy/registry.ts";
import { Router } from "../core/router.ts";
import { InlineTokens } from "../planes/tokens/inline.ts";
import { WordTokenizer } from "../tokenizer/word-tokenizer.ts";
import { LocalDecider } from "./local-decider.ts";
import { type Script, scriptedWorker } from "./scripted-worker.test-support.ts";
import { Gateway } from "./server.ts";

const HEAD = { id: "c", object: "text_completion", created: 1, model: "m" };
const EVENT = `data: ${JSON.stringify({ ...HEAD, choices: [{ index: 0, text: "x", finish_reason: null }] })}\n\n`;
const FINISH = `data: ${JSON.stringify({ ...HEAD, choices: [{ index: 0, text: "", finish_reason: "stop" }] })}\n\n`;
const USAGE_FIELDS = { prompt_tokens: 1, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 1 } };
const USAGE = `data: ${JSON.stringify({ ...HEAD, choices: [], usage: USAGE_FIELDS })}\n\n`;
const DONE = "data: [DONE]\n\n";
const COMPLETED = { completed: 1, failed: 0, timedOut: 0, cancelled: 0, unfinished: 0 };

async function serving(script: Script): Promise<{ url: string; router: Router; decider: LocalDecider }> {
  const worker = await scriptedWorker(script);
  const router = new Router(createPolicy("round-robin"), { blockTokens: 16, maxReplicas: 1, maxBlocks: 1024 });
  const decider = new LocalDecider({ router });
  decider.fleet.appeared({ name: "e", url: worker.url });
  const tokens = new InlineTokens(new WordTokenizer(), "exact");
  const gateway = new Gateway({ decider, tokens, blockTokens: 16 });
  const url = await gateway.listen();
  onTestFinished(async () => {
    await gateway.close(0);
    await decider.close();
    worker.close();
  });
  return { url, router, decider };
}

const BODY = JSON.stringify({ model: "m", prompt: "hello", stream: true });

function ask(url: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}/v1/completions`, { method: "POST", body: BODY, headers });
}

/** Says all there is to say, and does not end the answer. */
function sayAll(response: ServerResponse, said?: () => void): void {
  response.writeHead(200, { "content-type": "text/event-stream" }).write(EVENT + FINISH + USAGE + DONE, said);
}

test.each(["false", "true"])(
  "a worker that is cut off after its end mark has answered (migrates: %s)",
  async (migrates) => {
    const answers: ServerResponse[] = [];
    const { url, router, decider } = await serving((_body, response) => {
      answers.push(response);
      sayAll(response);
    });
    const reader = (await ask(url, { "x-warmpath-migrate": migrates })).body!.pipeThrough(new TextDecoderStream());
    let heard = "";
    for await (const text of reader) {
      heard += text;
      if (heard.includes(DONE)) answers[0].socket?.destroy();
    }
    expect(heard).toBe(EVENT + FINISH + DONE);
    expect(router.accounting).toMatchObject(COMPLETED);
    expect(answers).toHaveLength(1);
    expect(await decider.metricsText()).not.toMatch(/migrat.*[1-9]$/m);
  },
);

test("a worker that keeps its connection open after its end mark has answered, and is left", async () => {
  let left: Promise<unknown> | undefined;
  const { url, router } = await serving((_body, response) => {
    left = once(response, "close");
    sayAll(response);
  });
  expect(await (await ask(url)).text()).toBe(EVENT + FINISH + DONE);
  expect(router.accounting).toMatchObject(COMPLETED);
  await left;
});

test("a client that leaves with the end mark has its answer", async () => {
  const answers: ServerResponse[] = [];
  const { url, router } = await serving((_body, response) => {
    answers.push(response);
    sayAll(response);
  });
  const client = connect(Number(new URL(url).port), "127.0.0.1");
  client.write(`POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`);
  let heard = "";
  for await (const chunk of client) {
    heard += String(chunk);
    if (heard.includes(DONE)) break;
  }
  expect(client.destroyed).toBe(true);
  expect(router.accounting).toMatchObject(COMPLETED);
  expect(answers[0].writableEnded).toBe(false);
  answers[0].end();
  await vi.waitFor(() => expect(answers[0].closed).toBe(true));
});

test("connections to workers that end their answers after the end mark are used again", async () => {
  const connections = new Set<unknown>();
  let ended: Promise<unknown> | undefined;
  const { url, router } = await serving((_body, response, { socket }) => {
    connections.add(socket);
    ended = once(response, "finish");
    sayAll(response, () => response.end());
  });
  for (let i = 0; i < 20; i++) {
    await (await ask(url)).text();
    await ended;
  }
  expect(router.accounting).toMatchObject({ offered: 20, completed: 20 });
  // A request may come before the gateway has heard that the answer before is over.
  expect(connections.size).toBeLessThanOrEqual(2);
});
