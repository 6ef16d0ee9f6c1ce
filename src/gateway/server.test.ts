import type { IncomingMessage, ServerResponse } from "node:http";
import { connect } from "node:net";
import { text as allOf } from "node:stream/consumers";
import { afterEach, describe, expect, test } from "vitest";
import { createPolicy } from "../core/policy/registry.ts";
import { Router } from "../core/router.ts";
import { InlineTokens } from "../planes/tokens/inline.ts";
import { WordTokenizer } from "../tokenizer/word-tokenizer.ts";
import type { GatewayLimits } from "./limits.ts";
import { LocalDecider } from "./local-decider.ts";
import { type Script, scriptedWorker } from "./scripted-worker.test-support.ts";
import { Gateway } from "./server.ts";

const open: { close(): unknown }[] = [];

afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close();
});

/** A worker that does what the test says. */
async function scripted(script: Script): Promise<string> {
  const worker = await scriptedWorker(script);
  open.push(worker);
  return worker.url;
}

/** A gateway in front of scripted workers, without events. */
function gatewayTo(...scripts: Script[]): Promise<{ url: string; router: Router; faults: unknown[] }> {
  return gatewayWith({}, ...scripts);
}

async function gatewayWith(
  limits: Partial<GatewayLimits>,
  ...scripts: Script[]
): Promise<{ url: string; router: Router; faults: unknown[] }> {
  const urls = await Promise.all(scripts.map(scripted));
  const blockTokens = 16;
  const router = new Router(createPolicy("round-robin"), { blockTokens, maxReplicas: 4, maxBlocks: 1024 });
  const decider = new LocalDecider({ router });
  for (const [i, url] of urls.entries()) decider.fleet.appeared({ name: `worker-${i + 1}`, url });
  const tokens = new InlineTokens(new WordTokenizer(), "exact");
  const gateway = new Gateway({ decider, blockTokens, tokens, limits: { maxBodyBytes: 4096, ...limits } });
  open.push({ close: () => decider.close() }, { close: () => gateway.close(0) });
  const faults: unknown[] = [];
  decider.observeAttempts({ attemptAnswered: () => {}, attemptEnded: (_worker, { fault }) => faults.push(fault) });
  return { url: await gateway.listen(), router, faults };
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

  test("accounts a stream without its end mark as failed, passes on what there was, and says so", async () => {
    const events = 'data: {"choices":[{"text":"x"}]}\n\n';
    const { url, router } = await gatewayTo(answering(200, events, "text/event-stream"));
    const heard = await (await ask(url, { stream: true })).text();
    expect(heard.slice(0, events.length)).toBe(events);
    expect(heard.slice(events.length)).toMatch(/^data: \{"error":\{.*"code":"worker_failed"\}\}\n\n$/);
    expect(router.accounting).toMatchObject({ offered: 1, failed: 1, unfinished: 0 });
  });

  test("knows a stream by its type however a worker writes it", async () => {
    const events = 'data: {"choices":[{"text":"hi"}]}\n\ndata: [DONE]\n\n';
    const types = ["Text/Event-Stream", ["text/event-stream", "text/event-stream"]];
    for (const type of types) {
      const { url, router } = await gatewayTo((_body, response) => {
        response.writeHead(200, { "content-type": type }).end(events);
      });
      const response = await ask(url, { stream: true });
      expect(await response.text()).toBe(events);
      expect(response.headers.get("content-type")?.toLowerCase()).toBe("text/event-stream");
      expect(router.log.latest(1)[0].firstTokenNs).toBeGreaterThan(0);
      expect(router.accounting).toMatchObject({ completed: 1 });
    }
  });

  test("takes answers whose headers are as long as clients' and engines' together", async () => {
    const { url } = await gatewayTo((_body, response, { headers }) => {
      response
        .writeHead(200, { "x-request-id": headers["x-request-id"] ?? "", "x-engine": "e".repeat(8000) })
        .end(WHOLE);
    });
    const id = "i".repeat(15_000);
    const response = await ask(url, {}, { "x-request-id": id });
    expect([response.status, response.headers.get("x-request-id")]).toEqual([200, id]);
  });

  test("does not try an answer elsewhere that is longer than any it holds, and takes no worker for lost", async () => {
    const endless: Script = (_body, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(`data: {"choices":[{"text":"${"x".repeat(5_000_000)}"}]}\n\n`);
    };
    const { url, router, faults } = await gatewayTo(endless, endless);
    const response = await ask(url, { stream: true });
    expect([response.status, await response.text()]).toEqual([502, expect.stringContaining("has no end")]);
    expect(router.accounting).toMatchObject({ offered: 1, failed: 1, unfinished: 0 });
    expect(faults).toEqual(["stream-error"]);
  });

  test("serves a path that comes with a host before it, as to a proxy", async () => {
    const { url } = await gatewayTo(answering(200, WHOLE));
    const { port } = new URL(url);
    const socket = connect(Number(port), "127.0.0.1");
    socket.write(
      "GET http://gateway.example:80/health?x HTTP/1.1\r\nhost: gateway.example\r\nconnection: close\r\n\r\n",
    );
    expect(await allOf(socket)).toMatch(/^HTTP\/1\.1 200 [^]*"ok"/);
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

/** Streams one token, and then does what the test says. */
const beginning = (then: (response: ServerResponse) => void): Script => {
  return (_body, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write('data: {"choices":[{"text":"x"}]}\n\n');
    then(response);
  };
};

const USAGE_EVENT = 'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\n';

describe("the usage of a stream", () => {
  const streaming = (seen: string[]): Script => {
    return (body, response) => {
      seen.push(body);
      beginning((begun) => begun.end(`${USAGE_EVENT}data: [DONE]\n\n`))(body, response, {} as IncomingMessage);
    };
  };

  test("is asked of the worker and kept from a client that did not ask", async () => {
    const seen: string[] = [];
    const { url } = await gatewayTo(streaming(seen));
    const text = await (await ask(url, { stream: true })).text();
    expect(text).toBe('data: {"choices":[{"text":"x"}]}\n\ndata: [DONE]\n\n');
    expect(JSON.parse(seen[0])).toMatchObject({
      stream: true,
      stream_options: { include_usage: true },
      prompt: "hello",
    });
  });

  test("reaches a client that asked, and its body reaches the worker as it is", async () => {
    const seen: string[] = [];
    const { url } = await gatewayTo(streaming(seen));
    const fields = { stream: true, stream_options: { include_usage: true } };
    expect(await (await ask(url, fields)).text()).toContain(USAGE_EVENT);
    expect(seen).toEqual([JSON.stringify({ model: "m", prompt: "hello", ...fields })]);
  });
});

describe("deadlines", () => {
  test("a worker that does not begin its answer in time is given up with a 504", async () => {
    const { url, router } = await gatewayWith({ firstByteMs: 1, answerMs: 1 }, () => {});
    for (const stream of [true, false]) {
      const response = await ask(url, { stream });
      expect(response.status).toBe(504);
      expect(await response.json()).toMatchObject({ error: { code: "worker_timed_out" } });
    }
    expect(router.accounting).toMatchObject({ offered: 2, timedOut: 2, unfinished: 0 });
  });

  test("a stream that falls silent ends with an error in the stream", async () => {
    const { url, router } = await gatewayWith(
      { gapMs: 1 },
      beginning(() => {}),
    );
    const text = await (await ask(url, { stream: true })).text();
    expect(text).toContain("worker_timed_out");
    expect(router.accounting).toMatchObject({ offered: 1, timedOut: 1, unfinished: 0 });
  });

  test("a stream that breaks inside an event ends with whole events and an error", async () => {
    const { url, router } = await gatewayTo(
      beginning((response) => response.write('data: {"cut', () => response.destroy())),
    );
    const text = await (await ask(url, { stream: true })).text();
    expect(text).toMatch(/^data: \{"choices":\[\{"text":"x"\}\]\}\n\ndata: \{"error":.*"worker_failed".*\}\n\n$/);
    expect(router.accounting).toMatchObject({ offered: 1, failed: 1, unfinished: 0 });
  });
});

describe("the gateway's own bounds and endpoints", () => {
  test("more requests than there is room for are a 429, and accounted", async () => {
    const arrived: ServerResponse[] = [];
    let notify = (): void => {};
    const first = new Promise<void>((resolve) => (notify = resolve));
    const { url } = await gatewayWith({ maxStreams: 1 }, (_body, response) => {
      arrived.push(response);
      notify();
    });
    const waiting = ask(url);
    await first;
    const refused = await ask(url);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(await refused.json()).toMatchObject({ error: { code: "too_many_streams", type: "overloaded_error" } });
    arrived[0].end(WHOLE);
    expect((await waiting).status).toBe(200);
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toContain('warmpath_requests_offered_total{policy="round-robin"} 2');
    expect(metrics).toContain(
      'warmpath_requests_ended_total{policy="round-robin",account="shed",reason="max-streams"} 1',
    );
  });

  test("readiness says who could serve", async () => {
    const nobody = await gatewayTo();
    const empty = await fetch(`${nobody.url}/ready`);
    expect(empty.status).toBe(503);
    expect(await empty.json()).toMatchObject({ workers: { ready: 0, total: 0 } });
    const { url } = await gatewayTo(answering(200, WHOLE));
    const ready = await fetch(`${url}/ready`);
    expect(ready.status).toBe(200);
    expect(await ready.json()).toEqual({
      status: "ready",
      decider: "present",
      policy: "round-robin",
      workers: { ready: 1, total: 1 },
      index: { approximate: 1 },
    });
  });

  test("a mistake of the gateway's own is answered, counted and told of", async () => {
    const router = new Router(createPolicy("round-robin"), { blockTokens: 16, maxReplicas: 1, maxBlocks: 1024 });
    const decider = new LocalDecider({ router });
    const problems: string[] = [];
    const tokensOf = (): never => {
      throw new Error("no idea");
    };
    const problem = (message: string): void => void problems.push(message);
    const gateway = new Gateway({ decider, blockTokens: 16, tokens: { tokensOf }, problem });
    open.push({ close: () => decider.close() }, { close: () => gateway.close(0) });
    const response = await ask(await gateway.listen());
    expect([response.status, await response.json()]).toMatchObject([500, { error: { code: "internal_error" } }]);
    expect(problems).toEqual([
      expect.stringMatching(/^a mistake .* POST \/v1\/completions: Error: no idea at .*tokensOf /),
    ]);
    expect(await decider.metricsText()).toContain('warmpath_requests_invalid_total{code="internal_error"} 1');
  });

  test.each([
    ["GET", "/v1/chat/completions", "POST"],
    ["DELETE", "/v1/completions", "POST"],
    ["POST", "/v1/models", "GET, HEAD"],
    ["DELETE", "/v1/models/m", "GET, HEAD"],
    ["PUT", "/health", "GET, HEAD"],
  ])("%s %s is a 405 that names the methods there are", async (method, path, allowed) => {
    const { url } = await gatewayTo();
    const answer = await fetch(url + path, { method });
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, allowed]);
    expect(await answer.json()).toMatchObject({ error: { code: "method_not_allowed" } });
  });

  test("a model that is served can be asked about, and one that is not is a 404", async () => {
    const router = new Router(createPolicy("round-robin"), { blockTokens: 16, maxReplicas: 4, maxBlocks: 1024 });
    const decider = new LocalDecider({ router });
    decider.fleet.appeared({ name: "a", url: "http://127.0.0.1:1", model: "maker/model 1%" });
    const gateway = new Gateway({ decider, blockTokens: 16, tokens: new InlineTokens(new WordTokenizer(), "exact") });
    open.push({ close: () => decider.close() }, { close: () => gateway.close(0) });
    const models = `${await gateway.listen()}/v1/models`;
    const { data } = (await (await fetch(models)).json()) as { data: unknown[] };
    for (const written of ["maker%2Fmodel%201%25", "maker/model%201%25"]) {
      const answer = await fetch(`${models}/${written}`);
      expect([answer.status, await answer.json()]).toEqual([200, data[0]]);
    }
    for (const written of ["maker", "", "%ff", "maker%2Fmodel"]) {
      const answer = await fetch(`${models}/${written}`);
      const error = { type: "invalid_request_error", param: "model", code: "model_not_found" };
      expect([answer.status, await answer.json()]).toMatchObject([404, { error }]);
    }
  });

  test("the accounts in the metrics add up to what was offered", async () => {
    const { url } = await gatewayTo(answering(200, WHOLE));
    await Promise.all([ask(url), ask(url), ask(url, { max_tokens: -1 })]);
    const text = await (await fetch(`${url}/metrics`)).text();
    const sum = (name: string): number =>
      [...text.matchAll(new RegExp(`^${name}\\{.*\\} (\\d+)$`, "gm"))].reduce(
        (total, [, count]) => total + Number(count),
        0,
      );
    expect(sum("warmpath_requests_offered_total")).toBe(2);
    expect(sum("warmpath_requests_ended_total")).toBe(2);
    expect(sum("warmpath_requests_invalid_total")).toBe(1);
  });
});
