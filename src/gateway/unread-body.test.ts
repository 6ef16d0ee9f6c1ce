/** Workers that answer before they have read what they were sent, so that it is still on its way while others' requests come. */
import { once } from "node:events";
import { type AddressInfo, type Socket, createServer } from "node:net";
import { afterEach, expect, test } from "vitest";
import { createPolicy } from "../core/policy/registry.ts";
import { Router } from "../core/router.ts";
import { InlineTokens } from "../planes/tokens/inline.ts";
import { WordTokenizer } from "../tokenizer/word-tokenizer.ts";
import { LocalDecider } from "./local-decider.ts";
import { Gateway } from "./server.ts";

const open: { close(): unknown }[] = [];

afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close();
});

const EVENTS = 'data: {"choices":[{"text":"x"}]}\n\ndata: [DONE]\n\n';
const ANSWER = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ${EVENTS.length}\r\n\r\n${EVENTS}`;

/** A decider that says when a request has gone out. */
class TellingDecider extends LocalDecider {
  told: () => void = () => {};

  override sent(id: string): void {
    super.sent(id);
    this.told();
  }
}

/** More than a connection takes in while its other end does not read. */
const PROMPTS = ["a", "b", "c", "d", "e", "f", "g", "h"];
const PROMPT_BYTES = 1_000_000;

test("a body that its worker reads late is its own, whatever was asked meanwhile", async () => {
  const server = createServer({ pauseOnConnect: true });
  const connected = once(server, "connection");
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const router = new Router(createPolicy("round-robin"), { blockTokens: 16, maxReplicas: 4, maxBlocks: 1024 });
  const decider = new TellingDecider({ router });
  decider.fleet.appeared({ name: "worker", url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  const tokens = new InlineTokens(new WordTokenizer(), "exact");
  const gateway = new Gateway({ decider, blockTokens: 16, tokens });
  open.push({ close: () => server.close() }, { close: () => decider.close() }, { close: () => gateway.close(0) });
  const url = await gateway.listen();
  let worker: Socket | undefined;
  for (const letter of PROMPTS) {
    const body = JSON.stringify({ model: "m", stream: true, prompt: letter.repeat(PROMPT_BYTES) });
    const sent = new Promise<void>((resolve) => (decider.told = resolve));
    const asked = fetch(`${url}/v1/completions`, { method: "POST", body });
    await sent;
    worker ??= ((await connected) as [Socket])[0];
    worker.write(ANSWER);
    expect(await (await asked).text()).toContain('"text":"x"');
  }
  const read = await bodiesOn(worker as Socket, PROMPTS.length);
  expect(read.map((prompt) => [...new Set(prompt)].join(""))).toEqual(PROMPTS);
});

/** The prompts of so many requests on one connection. */
async function bodiesOn(socket: Socket, count: number): Promise<string[]> {
  let text = "";
  const prompts: string[] = [];
  for await (const chunk of socket.setEncoding("latin1")) {
    text += chunk as string;
    if (text.length < count * PROMPT_BYTES) continue;
    prompts.splice(0);
    for (const [, prompt] of text.matchAll(/"prompt":"([^"]*)"/g)) prompts.push(prompt);
    if (prompts.length === count) return prompts;
  }
  return prompts;
}
