import { once } from "node:events";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { createPolicy } from "../core/policy/registry.ts";
import { Router } from "../core/router.ts";
import { WordTokenizer } from "../tokenizer/word-tokenizer.ts";
import { collectBody } from "../wire/body.ts";
import { Gateway } from "./server.ts";

type Script = (body: string, response: ServerResponse, request: IncomingMessage) => void;

const open: { close(): unknown }[] = [];

afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close();
});

/** A worker that does what the test says. */
async function scripted(script: Script): Promise<string> {
  const server: Server = createServer((request, response) => {
    void collectBody(request, 1e6).then(({ bytes }) => script(Buffer.from(bytes ?? []).toString(), response, request));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  open.push({
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A gateway in front of scripted workers, without events. */
async function gatewayTo(...scripts: Script[]): Promise<{ url: string; router: Router }> {
  const urls = await Promise.all(scripts.map(scripted));
  const blockTokens = 16;
  const router = new Router(createPolicy("round-robin"), { blockTokens, maxReplicas: 4, maxBlocks: 1024 });
  const workers = urls.map((url, i) => ({ url, replica: { worker: `worker-${i + 1}` } }));
  const tokenizer = new WordTokenizer();
  const gateway = new Gateway({ router, blockTokens, tokenizer, models: ["m"], workers, maxBodyBytes: 4096 });
  open.push({ close: () => gateway.close(0) });
  return { url: await gateway.listen(), router };
}

function ask(url: string, fields: object = {}, headers: Record<string, string> = {}): Promise<Response> {
  const body = JSON.stringify({ model: "m", prompt: "hello", ...fields });
  return fetch(`${url}/v1/completions`, { method: "POST", body, headers });
}

const answering = (status: number, body: string, contentType = "application/json"): Script => {
  return (_body, response) => {
    response.writeHead(status, { "content-type": contentType }).end(body);
  };
};

const WHOLE = '{"choices":[{"text":"hi"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}';

describe("the gateway", () => {
  test("passes the body on as it is, with the headers that concern the worker", async () => {
    const seen: { body: string; authorization: string | undefined; cookie: string | undefined }[] = [];
    const { url } = await gatewayTo((body, response, { headers: { authorization, cookie } }) => {
      seen.push({ body, authorization, cookie });
      response.end("{}");
    });
    await ask(url, { "some-new_field": [1, { a: null }] }, { authorization: "Bearer x", cookie: "secret" });
    const body = '{"model":"m","prompt":"hello","some-new_field":[1,{"a":null}]}';
    expect(seen).toEqual([{ body, authorization: "Bearer x", cookie: undefined }]);
  });

  test.each([429, 500, 503])("tries another worker when one answers %i", async (status) => {
    const { url, router } = await gatewayTo(answering(status, "{}"), answering(200, WHOLE));
    const workers: (string | null)[] = [];
    for (let i = 0; i < 2; i++) {
      const response = await ask(url);
      expect(await response.text()).toBe(WHOLE);
      workers.push(response.headers.get("x-warmpath-worker"));
    }
    expect(workers).toEqual(["worker-2", "worker-2"]);
    expect(router.accounting).toMatchObject({ offered: 2, completed: 2, rejected: 0, failed: 0, unfinished: 0 });
  });

  test("passes the last refusal on when nobody serves, and accounts for it once", async () => {
    const refusal = '{"error":{"message":"full"}}';
    const { url, router } = await gatewayTo(answering(503, refusal), answering(503, refusal));
    const response = await ask(url);
    expect([response.status, await response.text()]).toEqual([503, refusal]);
    expect(router.accounting).toMatchObject({ offered: 1, rejected: 1, unfinished: 0 });
    expect(router.log.latest(9)).toHaveLength(2);
  });

  test("does not try a request again that a worker calls bad", async () => {
    const { url, router } = await gatewayTo(answering(400, '{"error":{}}'), answering(400, '{"error":{}}'));
    expect((await ask(url)).status).toBe(400);
    expect(router.accounting).toMatchObject({ offered: 1, rejected: 1, unfinished: 0 });
    expect(router.log.latest(9)).toHaveLength(1);
  });

  test("accounts a stream without its end mark as failed, and passes on what there was", async () => {
    const events = 'data: {"choices":[{"text":"x"}]}\n\n';
    const { url, router } = await gatewayTo(answering(200, events, "text/event-stream"));
    expect(await (await ask(url, { stream: true })).text()).toBe(events);
    expect(router.accounting).toMatchObject({ offered: 1, failed: 1, unfinished: 0 });
  });

  test("delivers a stream whole to a client that reads late", async () => {
    const event = `data: {"choices":[{"text":"${"x".repeat(4000)}"}]}\n\n`;
    const count = 2000;
    const { url, router } = await gatewayTo((_body, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      let sent = 0;
      const send = (): void => {
        while (sent < count) {
          sent++;
          if (!response.write(event)) break;
        }
        if (sent < count) response.once("drain", send);
        else response.end("data: [DONE]\n\n");
      };
      send();
    });
    const response = await ask(url, { stream: true });
    expect((await response.text()).length).toBe(count * event.length + "data: [DONE]\n\n".length);
    expect(router.accounting).toMatchObject({ offered: 1, completed: 1, unfinished: 0 });
    expect(router.log.latest(1)[0].firstTokenNs).toBeGreaterThan(0);
  });

  test("refuses a body that is too large", async () => {
    const { url, router } = await gatewayTo(answering(200, WHOLE));
    const response = await ask(url, { prompt: "x".repeat(5000) });
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ error: { code: "body_too_large" } });
    expect(router.accounting.offered).toBe(0);
  });

  test("serves nothing else", async () => {
    const { url } = await gatewayTo();
    const response = await fetch(`${url}/v1/embeddings`, { method: "POST", body: "{}" });
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { code: "not_found", type: "invalid_request_error" } });
  });

  test("fails what is still under way when the time to close is up", async () => {
    let arrived = (): void => {};
    const waiting = new Promise<void>((resolve) => (arrived = resolve));
    const { url, router } = await gatewayTo(() => arrived());
    const reply = ask(url);
    await waiting;
    const gateway = open.at(-1);
    const [response] = await Promise.all([reply, gateway?.close()]);
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: { code: "shutting_down" } });
    expect(router.accounting).toMatchObject({ offered: 1, failed: 1, unfinished: 0 });
  });
});
