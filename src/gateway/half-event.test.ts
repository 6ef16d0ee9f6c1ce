/** A stream that ends inside an event: what came of that event is nobody's, and what follows is an event of its own. */
import type { ServerResponse } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { createPolicy } from "../core/policy/registry.ts";
import { Router } from "../core/router.ts";
import { InlineTokens } from "../planes/tokens/inline.ts";
import { WordTokenizer } from "../tokenizer/word-tokenizer.ts";
import { LocalDecider } from "./local-decider.ts";
import { scriptedWorker } from "./scripted-worker.test-support.ts";
import { Gateway } from "./server.ts";

const HEAD = { id: "c", object: "text_completion", created: 1, model: "m" };
const event = (text: string, reason: string | null = null): string =>
  `data: ${JSON.stringify({ ...HEAD, choices: [{ index: 0, text, finish_reason: reason }] })}\n\n`;
const HALF = event("lost").slice(0, 40);
const DONE = "data: [DONE]\n\n";

/** What a client of a gateway hears whose workers answer one after the other like this. */
async function heardOf(answers: readonly ((response: ServerResponse) => void)[], migrates: boolean): Promise<string> {
  const router = new Router(createPolicy("round-robin"), { blockTokens: 16, maxReplicas: 2, maxBlocks: 1024 });
  const decider = new LocalDecider({ router });
  let asked = 0;
  const workers = await Promise.all(
    answers.map(() => scriptedWorker((_body, response) => answers[asked++ % answers.length](response))),
  );
  for (const [at, { url }] of workers.entries()) decider.fleet.appeared({ name: `w${at}`, url });
  const gateway = new Gateway({ decider, tokens: new InlineTokens(new WordTokenizer(), "exact"), blockTokens: 16 });
  const url = await gateway.listen();
  onTestFinished(async () => {
    await gateway.close(0);
    await decider.close();
    for (const worker of workers) worker.close();
  });
  const answer = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "x-warmpath-migrate": String(migrates) },
    body: JSON.stringify({ model: "m", prompt: "hello", stream: true }),
  });
  return await answer.text();
}

function streaming(text: string): (response: ServerResponse) => void {
  return (response) => response.writeHead(200, { "content-type": "text/event-stream" }).end(text);
}

/** As servers answer that close the connection to end a stream: whether it was cut cannot be told from the connection. */
function closing(text: string): (response: ServerResponse) => void {
  const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
  return ({ socket }) => socket?.end(head + text);
}

test.each([
  ["ends its answer", streaming],
  ["closes its connection", closing],
])("a client hears of a worker that %s inside an event, in an event", async (_how, answering) => {
  const heard = await heardOf([answering(event("a") + HALF)], false);
  expect(heard.slice(0, event("a").length)).toBe(event("a"));
  const [, last = ""] = /^data: (.*)\n\n$/.exec(heard.slice(event("a").length)) ?? [];
  expect(JSON.parse(last)).toMatchObject({ error: { code: "worker_failed" } });
});

test("a stream that goes on elsewhere has nothing of the event that it was cut in", async () => {
  const heard = await heardOf([closing(event("a") + HALF), streaming(event("b", "stop") + DONE)], true);
  expect(heard).toBe(event("a") + event("b", "stop") + DONE);
});

test.each(["data: [DONE]", "data: [DONE]\n", "data: [DONE]\r\n"])(
  "an end mark without its blank line is one: %j",
  async (mark) => {
    expect(await heardOf([streaming(event("a", "stop") + mark)], false)).toBe(event("a", "stop") + DONE);
  },
);

test("an error without its blank line reaches the client whole", async () => {
  const error = 'data: {"error":{"message":"out of memory"}}';
  expect(await heardOf([streaming(`${event("a")}${error}\n`)], false)).toBe(`${event("a")}${error}\n\n`);
});
