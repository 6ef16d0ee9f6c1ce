/** Streams whose worker is lost, and the retry budget, with workers that do what the test says, one request after another. */
import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { createPolicy } from "../core/policy/registry.ts";
import { Router } from "../core/router.ts";
import { InlineTokens } from "../planes/tokens/inline.ts";
import type { PromptTokens } from "../planes/tokens/types.ts";
import { WordTokenizer } from "../tokenizer/word-tokenizer.ts";
import { SSE_DONE, sseEvent } from "../wire/sse.ts";
import type { GatewayLimits } from "./limits.ts";
import { LocalDecider } from "./local-decider.ts";
import { type Script, scriptedWorker } from "./scripted-worker.test-support.ts";
import { Gateway } from "./server.ts";

const open: { close(): unknown }[] = [];

afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close();
});

async function scripted(script: Script): Promise<string> {
  const worker = await scriptedWorker(script);
  open.push(worker);
  return worker.url;
}

interface Options {
  /** As many as there are scripts unless told. */
  readonly workers?: number;
  readonly limits?: Partial<GatewayLimits>;
  readonly retriesPerSecond?: number;
  readonly tokens?: Pick<PromptTokens, "tokensOf">;
  readonly migratesStreams?: boolean;
}

/** A gateway whose requests are answered by these scripts in turn, whichever worker each of them goes to. */
async function gatewayWith(
  { workers, limits = {}, retriesPerSecond = 10, tokens, migratesStreams = true }: Options,
  ...scripts: readonly Script[]
): Promise<{ url: string; router: Router; decider: LocalDecider }> {
  const blockTokens = 2;
  const router = new Router(createPolicy("round-robin"), { blockTokens, maxReplicas: 4, maxBlocks: 1024 });
  const decider = new LocalDecider({ router, retryBudget: { share: 0, perSecond: retriesPerSecond } });
  let requests = 0;
  const inTurn: Script = (...request) => scripts[requests++](...request);
  for (let i = 1; i <= (workers ?? scripts.length); i++) {
    decider.fleet.appeared({ name: `worker-${i}`, url: await scripted(inTurn) });
  }
  const gateway = new Gateway({
    decider,
    blockTokens,
    tokens: tokens ?? new InlineTokens(new WordTokenizer(), "exact"),
    limits,
    migratesStreams,
  });
  open.push({ close: () => decider.close() }, { close: () => gateway.close(0) });
  return { url: await gateway.listen(), router, decider };
}

function ask(url: string, fields: object = {}, headers: Record<string, string> = {}): Promise<Response> {
  const body = JSON.stringify({
    model: "m",
    messages: [{ role: "user", content: "tell me" }],
    stream: true,
    max_tokens: 9,
    ...fields,
  });
  return fetch(`${url}/v1/chat/completions`, { method: "POST", body, headers });
}

/** A stream of these words under this id, up to what comes after them. */
function words(id: string, said: readonly string[], then: (response: ServerResponse) => void): Script {
  const event = (delta: object): string =>
    sseEvent(JSON.stringify({ id, created: 7, model: "m", choices: [{ index: 0, delta, finish_reason: null }] }));
  const opening = event({ role: "assistant", content: "" });
  return (_body, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(opening + said.map((word) => event({ content: word })).join(""), () => then(response));
  };
}

const cut = (response: ServerResponse): void => void response.destroy();
const finish = (response: ServerResponse): void => {
  const end = { id: "second", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
  const usage = { id: "second", choices: [], usage: { prompt_tokens: 7, completion_tokens: 1, total_tokens: 8 } };
  response.end(sseEvent(JSON.stringify(end)) + sseEvent(JSON.stringify(usage)) + SSE_DONE);
};

/** What is in a stream: the words, and everything but them. */
function read(text: string): { said: string; ids: unknown[]; roles: number; ends: number; usage: unknown } {
  const events = [...text.matchAll(/^data: (\{.*\})$/gm)].map(
    ([, json]) => JSON.parse(json) as Record<string, unknown>,
  );
  const choices = events.flatMap(
    (event) => (event["choices"] ?? []) as { delta?: { role?: string; content?: string } }[],
  );
  return {
    said: choices.map(({ delta }) => delta?.content ?? "").join(""),
    ids: [...new Set(events.map(({ id }) => id))],
    roles: choices.filter(({ delta }) => delta?.role !== undefined).length,
    ends: text.split("[DONE]").length - 1,
    usage: events.find(({ usage }) => usage !== undefined)?.["usage"],
  };
}

describe("a stream that is cut", () => {
  test("goes on with another worker as if nothing had happened, and is accounted once", async () => {
    const seen: string[] = [];
    const { url, router, decider } = await gatewayWith(
      {},
      words("first", ["one", " two"], cut),
      (body, response, request) => {
        seen.push(body);
        words("second", [" three"], finish)(body, response, request);
      },
    );
    const response = await ask(url, { stream_options: { include_usage: true } });
    expect(read(await response.text())).toEqual({
      said: "one two three",
      ids: ["first"],
      roles: 1,
      ends: 1,
      usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 },
    });
    expect(JSON.parse(seen[0])).toMatchObject({
      messages: [
        { role: "user", content: "tell me" },
        { role: "assistant", content: "one two" },
      ],
      continue_final_message: true,
      add_generation_prompt: false,
      max_tokens: 7,
      stream_options: { include_usage: true },
    });
    const [second, first] = router.log.latest(2);
    expect(second).toMatchObject({ attempt: 2, continues: first.decision, filtered: { tried: [first.chosen] } });
    // The marks of two messages and of an end, and the words of both.
    expect([first.promptTokens, second.promptTokens]).toEqual([5, 7]);
    expect(router.accounting).toMatchObject({ offered: 1, completed: 1, unfinished: 0 });
    expect(await decider.metricsText()).toMatch(/warmpath_migrations_total\{policy="round-robin",reason="reset"\} 1/);
  });

  test("stays cut where nobody asked for more, and a client may ask or decline for itself", async () => {
    const scripts = [words("first", ["one"], cut), words("second", [" two"], finish)];
    for (const [migratesStreams, header, isWhole] of [
      [false, undefined, false],
      [false, "true", true],
      [true, "false", false],
    ] as const) {
      const { url, router } = await gatewayWith({ migratesStreams }, ...scripts);
      const text = await (await ask(url, {}, header === undefined ? {} : { "x-warmpath-migrate": header })).text();
      expect(text.includes("[DONE]")).toBe(isWhole);
      expect(text.includes("worker_failed")).toBe(!isWhole);
      expect(router.accounting).toMatchObject(isWhole ? { completed: 1 } : { failed: 1 });
    }
  });

  test.each([
    ["ends without its end mark", (response: ServerResponse) => response.end(), {}],
    ["falls silent", () => {}, { gapMs: 1 }],
    [
      "reports an error",
      (response: ServerResponse) => response.end(sseEvent('{"error":{"message":"dead"}}') + SSE_DONE),
      {},
    ],
  ])("goes on if its worker %s", async (_, then, limits) => {
    const { url, router } = await gatewayWith(
      { limits },
      words("first", ["one"], then),
      words("second", [" two"], finish),
    );
    const text = await (await ask(url)).text();
    expect(read(text)).toMatchObject({ said: "one two", ends: 1, roles: 1 });
    expect(text).not.toContain("error");
    expect(router.accounting).toMatchObject({ offered: 1, completed: 1, unfinished: 0 });
  });

  test("goes on once, and then ends with an error that says so", async () => {
    const { url, router } = await gatewayWith(
      {},
      words("first", ["one"], cut),
      words("second", [" two"], cut),
      words("third", [" three"], finish),
    );
    const text = await (await ask(url)).text();
    expect(read(text).said).toBe("one two");
    expect(text).toContain("the stream could not be continued: continued-before");
    expect(router.accounting).toMatchObject({ offered: 1, failed: 1, unfinished: 0 });
  });

  test("is tried on a third worker if the second refuses, and ends with an error if all do", async () => {
    const refusing: Script = (_body, response) => void response.writeHead(503).end("{}");
    const kept = await gatewayWith({}, words("first", ["one"], cut), refusing, words("third", [" two"], finish));
    expect(read(await (await ask(kept.url)).text())).toMatchObject({ said: "one two", ends: 1 });
    expect(kept.router.accounting).toMatchObject({ offered: 1, completed: 1 });
    const lost = await gatewayWith({}, words("first", ["one"], cut), refusing);
    expect(await (await ask(lost.url)).text()).toContain("answered with status 503");
    expect(lost.router.accounting).toMatchObject({ offered: 1, rejected: 1, unfinished: 0 });
  });

  test("fails as it would where it cannot be continued, and says why", async () => {
    const { url, decider } = await gatewayWith({}, words("first", ["one"], cut), words("second", [" two"], finish));
    const text = await (await ask(url, { response_format: { type: "json_object" } })).text();
    expect(text).toContain("the stream could not be continued: constrained-output");
    expect(await decider.metricsText()).toContain(
      'warmpath_migrations_refused_total{policy="round-robin",reason="constrained-output"} 1',
    );
  });

  test("ends with the engine's own error where nobody can go on, and only once where it is the second's", async () => {
    const erring = (response: ServerResponse): void => {
      response.end(sseEvent('{"error":{"message":"dead"}}') + SSE_DONE);
    };
    const alone = await gatewayWith({}, words("first", ["one"], erring));
    expect(await (await ask(alone.url)).text()).toMatch(/"dead"\}\}\n\n$/);
    const both = await gatewayWith({}, words("first", ["one"], erring), words("second", [" two"], erring));
    const text = await (await ask(both.url)).text();
    expect([read(text).said, text.split('"dead"').length - 1]).toEqual(["one two", 1]);
    for (const { router } of [alone, both]) expect(router.accounting).toMatchObject({ offered: 1, failed: 1 });
  });

  test("before it began by an engine's error is answered elsewhere, and no worker is taken for lost", async () => {
    const erring: Script = (_body, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(sseEvent('{"error":{"message":"bad luck"}}') + SSE_DONE);
    };
    const faults: unknown[] = [];
    const watch = ({ decider }: { decider: LocalDecider }): void =>
      decider.observeAttempts({
        attemptAnswered: () => {},
        attemptEnded: (_worker, { outcome, fault }) => faults.push([outcome, fault]),
      });
    const one = await gatewayWith({}, erring, words("second", ["one", " two"], finish));
    watch(one);
    expect(read(await (await ask(one.url)).text())).toMatchObject({ said: "one two", ends: 1, ids: ["second"] });
    expect(one.router.accounting).toMatchObject({ offered: 1, completed: 1 });
    expect(faults.splice(0)).toEqual([
      ["failed", "stream-error"],
      ["completed", undefined],
    ]);

    const all = await gatewayWith({}, erring, erring);
    watch(all);
    const answer = await ask(all.url);
    expect([answer.status, await answer.text()]).toEqual([502, expect.stringContaining("bad luck")]);
    expect(faults).toEqual([
      ["failed", "stream-error"],
      ["failed", "stream-error"],
    ]);
  });

  test("by one worker after another is told as a request that had failed elsewhere", async () => {
    const { url, decider } = await gatewayWith({}, words("first", ["one"], cut), words("second", [" two"], cut));
    const told: unknown[] = [];
    decider.observeAttempts({
      attemptAnswered: () => {},
      attemptEnded: (_worker, { fault }, _afterMs, hasFailedElsewhere) => told.push([fault, hasFailedElsewhere]),
    });
    await (await ask(url)).text();
    expect(told).toEqual([
      ["reset", false],
      ["reset", true],
    ]);
  });

  test("fails as it would where there is no other worker", async () => {
    const { url, decider } = await gatewayWith({}, words("first", ["one"], cut));
    expect(await (await ask(url)).text()).toContain("the stream could not be continued: no-worker");
    expect(await decider.metricsText()).toContain(
      'warmpath_migrations_refused_total{policy="round-robin",reason="no-worker"} 1',
    );
  });

  test("is ended here where the client has all of the answer", async () => {
    const unused: Script = () => expect.unreachable("nobody was to be asked");
    const full = await gatewayWith({}, words("first", ["one", " two"], cut), unused);
    const text = await (await ask(full.url, { max_tokens: 2 })).text();
    expect(read(text)).toMatchObject({ said: "one two", ends: 1, ids: ["first"] });
    expect(text).toContain('"finish_reason":"length"');
    const said = words("first", ["one"], (response) => {
      const end = { id: "first", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
      response.write(sseEvent(JSON.stringify(end)), () => response.destroy());
    });
    const finished = await gatewayWith({}, said, unused);
    expect(read(await (await ask(finished.url)).text())).toMatchObject({ said: "one", ends: 1 });
    expect(finished.router.accounting).toMatchObject({ offered: 1, completed: 1 });
  });

  test("is never begun for a body that is nested without end, which nobody could write again", async () => {
    const { url, router } = await gatewayWith({}, words("first", ["one"], cut), words("second", [" two"], finish));
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    const bodies = [
      `{"model":"m","stream":true,"messages":[{"role":"user","content":"tell me"}],"metadata":${deep}}`,
      `{"model":"m","stream":true,"messages":[{"role":"user","content":"tell me"}],"tools":${deep}}`,
      `{"model":"m","stream":true,"messages":[{"role":"user","content":[{"type":"x","x":${deep}}]}]}`,
    ];
    for (const body of bodies) {
      const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", body });
      expect([answer.status, await answer.json()]).toMatchObject([400, { error: { code: "invalid_request" } }]);
    }
    expect(router.accounting.offered).toBe(0);
  });

  test("of a text goes on behind the prompt and what was said", async () => {
    const prompts: unknown[] = [];
    const piece = (text: string): string => sseEvent(JSON.stringify({ id: "t", choices: [{ index: 0, text }] }));
    const { url } = await gatewayWith(
      {},
      (_body, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" }).write(piece(" a"), () => response.destroy());
      },
      (body, response) => {
        prompts.push((JSON.parse(body) as { prompt: unknown }).prompt);
        response.writeHead(200, { "content-type": "text/event-stream" }).end(piece(" time") + SSE_DONE);
      },
    );
    const body = JSON.stringify({ model: "m", prompt: "once upon", stream: true });
    const text = await (await fetch(`${url}/v1/completions`, { method: "POST", body })).text();
    expect(text).toBe(piece(" a") + piece(" time") + SSE_DONE);
    expect(prompts).toEqual(["once upon a"]);
  });

  test("ends with an error where its rest has no tokens, at once or later", async () => {
    for (const fail of [
      () => Promise.reject(new Error("no tokens")),
      (): never => {
        throw new Error("no tokens");
      },
    ]) {
      const word = new WordTokenizer();
      let prompts = 0;
      const tokens = {
        tokensOf: (prompt: Parameters<WordTokenizer["encode"]>[0]) => (prompts++ === 0 ? word.encode(prompt) : fail()),
      };
      const { url, router } = await gatewayWith(
        { tokens },
        words("first", ["one"], cut),
        words("second", [" two"], finish),
      );
      expect(await (await ask(url)).text()).toContain("the stream could not be continued: unusual-prompt");
      expect(router.accounting).toMatchObject({ offered: 1, failed: 1, unfinished: 0 });
    }
  });

  test("waits for tokens that are made elsewhere, and a client may leave meanwhile", async () => {
    let askedAgain = (): void => {};
    const isAskedAgain = new Promise<void>((resolve) => (askedAgain = resolve));
    const word = new WordTokenizer();
    let prompts = 0;
    // A request, its rest, which comes late, and its whole answer; then another, and its rest, which never comes.
    const tokens: Pick<PromptTokens, "tokensOf"> = {
      tokensOf: (prompt) => {
        prompts++;
        if (prompts === 2) return Promise.resolve(word.encode(prompt));
        if (prompts < 5) return word.encode(prompt);
        askedAgain();
        return new Promise(() => {});
      },
    };
    const scripts = [words("first", ["one"], cut), words("second", [" two"], finish), words("third", ["one"], cut)];
    const { url, router } = await gatewayWith({ tokens, workers: 2 }, ...scripts);
    expect(read(await (await ask(url)).text())).toMatchObject({ said: "one two", ends: 1 });
    const left = await ask(url);
    await isAskedAgain;
    await left.body?.cancel();
    await expect.poll(() => router.accounting.unfinished).toBe(0);
    expect(router.accounting).toMatchObject({ offered: 2, completed: 1, cancelled: 1 });
  });
});

describe("the retry budget", () => {
  const refusing: Script = (_body, response) =>
    void response.writeHead(500, { "content-type": "application/json" }).end("{}");
  const working: Script = (_body, response) => void response.end("{}");

  test("lets a failure be tried elsewhere, and once used up returns it with its reason", async () => {
    const { url, router, decider } = await gatewayWith(
      { retriesPerSecond: 0.1, workers: 2 },
      refusing,
      working,
      refusing,
      working,
    );
    const answers: [number, string | null][] = [];
    for (let i = 0; i < 3; i++) {
      const response = await ask(url, { stream: false });
      answers.push([response.status, response.headers.get("x-warmpath-not-retried")]);
    }
    expect(answers).toEqual([
      [200, null],
      [500, "retry-budget"],
      [200, null],
    ]);
    expect(router.accounting).toMatchObject({ offered: 3, completed: 2, failed: 1 });
    const metrics = await decider.metricsText();
    expect(metrics).toContain('warmpath_retries_total{policy="round-robin",reason="status"} 1');
    expect(metrics).toContain('warmpath_retries_refused_total{policy="round-robin",reason="status"} 1');
  });

  test("is named in the error where the worker has not even answered", async () => {
    const { url } = await gatewayWith({ retriesPerSecond: 0 }, (_body, response) => void response.destroy(), working);
    const response = await ask(url);
    expect([response.status, response.headers.get("x-warmpath-not-retried")]).toEqual([502, "retry-budget"]);
    expect(await response.text()).toMatch(/"code":"worker_failed"/);
  });

  test("is not for streams that are continued", async () => {
    const { url } = await gatewayWith(
      { retriesPerSecond: 0 },
      words("first", ["one"], cut),
      words("second", [" two"], finish),
    );
    expect(read(await (await ask(url)).text())).toMatchObject({ said: "one two", ends: 1 });
  });
});
