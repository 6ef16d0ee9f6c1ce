/** What clients hear of a gateway that can wait for their answers no longer. */
import { once } from "node:events";
import { connect } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { createPolicy } from "../core/policy/registry.ts";
import { Router } from "../core/router.ts";
import { InlineTokens } from "../planes/tokens/inline.ts";
import { WordTokenizer } from "../tokenizer/word-tokenizer.ts";
import { ForwardingDecider } from "./access/forwarding-decider.ts";
import type { DecidedRequest, OfferedRequest } from "./decider.ts";
import { LocalDecider } from "./local-decider.ts";
import { type Script, scriptedWorker } from "./scripted-worker.test-support.ts";
import { Gateway } from "./server.ts";

const EVENT = 'data: {"choices":[{"text":"x"}]}\n\n';

/** One whose last word on a request does not come in time, as of another process that is busy or gone. */
class LateDecider extends ForwardingDecider {
  override offer(request: OfferedRequest, decided: DecidedRequest): void {
    this.inner.offer(request, {
      place: (placement) => decided.place(placement),
      shed: (reason) => decided.shed(reason),
      over: () => {},
    });
  }
}

async function serving(script: Script): Promise<{ url: string; router: Router; gateway: Gateway }> {
  const worker = await scriptedWorker(script);
  const router = new Router(createPolicy("round-robin"), { blockTokens: 16, maxReplicas: 1, maxBlocks: 1024 });
  const decider = new LocalDecider({ router });
  decider.fleet.appeared({ name: "e", url: worker.url });
  const tokens = new InlineTokens(new WordTokenizer(), "exact");
  const gateway = new Gateway({ decider: new LateDecider(decider), tokens, blockTokens: 16 });
  const url = await gateway.listen();
  onTestFinished(async () => {
    await gateway.close(0);
    await decider.close();
    worker.close();
  });
  return { url, router, gateway };
}

function ask(url: string, fields: object): Promise<Response> {
  const body = JSON.stringify({ model: "m", prompt: "hello", ...fields });
  return fetch(`${url}/v1/completions`, { method: "POST", body });
}

test.each(["close", "retire"] as const)("%s tells whoever still waits for an answer, and ends", async (way) => {
  let asked = 0;
  const { url, router, gateway } = await serving((body, response) => {
    asked++;
    if (body.includes("begins")) response.writeHead(200, { "content-type": "text/event-stream" }).write(EVENT);
  });
  const begun = await ask(url, { prompt: "begins", stream: true });
  const others = [ask(url, { stream: true }), ask(url, {})];
  await vi.waitFor(() => expect(asked).toBe(3));
  const ended = gateway[way](0);
  const text = await begun.text();
  expect(text.startsWith(`${EVENT}data: `)).toBe(true);
  expect(JSON.parse(text.slice(EVENT.length + "data: ".length))).toMatchObject({ error: { code: "shutting_down" } });
  for (const answer of await Promise.all(others)) {
    expect(answer.status).toBe(503);
    expect(answer.headers.get("x-warmpath-worker")).toBe("e");
    expect(await answer.json()).toMatchObject({ error: { code: "shutting_down" } });
  }
  await ended;
  expect(router.accounting).toMatchObject({ offered: 3, failed: 3, unfinished: 0 });
});

test("whoever does not read does not keep the gateway from ending", async () => {
  const { url, router, gateway } = await serving((_body, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (): void => {
      while (response.write(EVENT.repeat(1000)));
      response.once("drain", send);
    };
    send();
  });
  const client = connect(Number(new URL(url).port), "127.0.0.1");
  client.on("error", () => {});
  const body = JSON.stringify({ model: "m", prompt: "hello", stream: true });
  client.write(`POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  await once(client, "readable");
  await gateway.close(0);
  expect(router.accounting).toMatchObject({ offered: 1, failed: 1, unfinished: 0 });
  client.destroy();
});
