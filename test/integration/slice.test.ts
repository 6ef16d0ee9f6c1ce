/**
 * The slice: one thin line through the whole, kept as an example. The same router decides in virtual time for a small
 * fleet of event-driven engines, and in wall time for workers behind a gateway that an official client talks to.
 */
import { EventEmitter, once } from "node:events";
import OpenAI, { APIError } from "openai";
import { afterEach, describe, expect, test, vi } from "vitest";
import { resultsText, runArm } from "../../examples/slice.ts";
import { LiveFleet, type LiveFleetOptions, MODEL } from "../../examples/slice/live-fleet.ts";
import { parseResults } from "../../src/lab/results/results-json.ts";
import type { Engine, EngineJob, EngineListener, EngineTicket } from "../../src/worker/engine.ts";

type Message = OpenAI.Chat.ChatCompletionMessageParam;

/** An engine that tells what it is asked for and, while held, answers nothing. */
class WatchedEngines extends EventEmitter {
  isHeld = false;

  readonly wrap = (engine: Engine): Engine => ({
    snapshot: () => engine.snapshot(),
    submit: (job: EngineJob, listener: EngineListener): EngineTicket => {
      const ticket = this.isHeld ? undefined : engine.submit(job, listener);
      queueMicrotask(() => this.emit("submitted"));
      return {
        cancel: () => {
          ticket?.cancel();
          this.emit("cancelled");
        },
      };
    },
  });
}

let fleet: LiveFleet | undefined;

async function start(options: Partial<LiveFleetOptions> = {}): Promise<{ fleet: LiveFleet; client: OpenAI }> {
  fleet = await LiveFleet.start({ policy: "kv-cost", workers: 2, ...options });
  const client = new OpenAI({ baseURL: `${fleet.url}/v1`, apiKey: "none", maxRetries: 0, timeout: 20_000 });
  return { fleet, client };
}

afterEach(async () => {
  await fleet?.close();
  fleet = undefined;
});

function words(count: number, topic: string): string {
  return Array.from({ length: count }, (_, i) => `${topic}${i}`).join(" ");
}

describe("the slice in virtual time", () => {
  const roundRobin = runArm("round-robin", 7);
  const kvCost = runArm("kv-cost", 7);

  test.each([roundRobin, kvCost])("every request of $cell.arm ends in exactly one account", ({ cell, run, router }) => {
    const { offered, ...outcomes } = run.accounting;
    expect(Object.values(outcomes).reduce((sum, count) => sum + count, 0)).toBe(offered);
    expect(cell.accounting).toEqual(run.accounting);
    expect(cell.accounting).toMatchObject({ offered: 200, completed: 200 });
    for (const replica of router.fleet.indices()) {
      expect(router.describeLoad(replica).modelled).toEqual({
        inFlight: 0,
        decoding: 0,
        pendingPrefillTokens: 0,
        contextTokens: 0,
        activeBlocks: 0,
      });
    }
  });

  test("kv-cost finds more in the caches than round-robin, within what can be found, and answers sooner", () => {
    expect(kvCost.cell.cache.observed).toBeGreaterThan(roundRobin.cell.cache.observed as number);
    expect(kvCost.cell.cache.observed).toBeLessThanOrEqual(kvCost.cell.cache.ceiling as number);
    expect(kvCost.cell.ttftMs.offered.mean).toBeLessThan(roundRobin.cell.ttftMs.offered.mean as number);
  });

  test("both arms are given the same conversations", () => {
    const prompts = [roundRobin, kvCost].map(({ run }) =>
      run.records.map(({ id, promptTokens, outputTokens }) => `${id} ${promptTokens} ${outputTokens}`).sort(),
    );
    expect(prompts[0]).toEqual(prompts[1]);
  });

  test("its cells make a results.json that can be read back, byte for byte the same every time", () => {
    const text = resultsText([roundRobin.cell, kvCost.cell]);
    expect(resultsText(["round-robin", "kv-cost"].map((policy) => runArm(policy, 7).cell))).toBe(text);
    const { content, problems } = parseResults(text, "results.json");
    expect(problems).toEqual([]);
    expect(content?.cells.map(({ arm, policy, level, run, seed }) => ({ arm, policy, level, run, seed }))).toEqual(
      ["round-robin", "kv-cost"].map((policy) => ({
        arm: policy,
        policy,
        level: { concurrency: 12, workers: 4 },
        run: 1,
        seed: 7,
      })),
    );
  });
});

describe("the slice behind the gateway", () => {
  test("a growing conversation stays where its cache is, and what was predicted is what the engine found", async () => {
    const { fleet: live, client } = await start();
    const messages: Message[] = [{ role: "system", content: words(100, "rule") }];
    const served: { worker: string | null; cachedTokens: number | undefined }[] = [];
    for (let turn = 0; turn < 4; turn++) {
      messages.push({ role: "user", content: words(60, `turn${turn}-`) });
      const request = client.chat.completions.create({ model: MODEL, messages, max_tokens: 40 });
      const { data: reply, response } = await request.withResponse();
      messages.push({ role: "assistant", content: reply.choices[0].message.content });
      const cachedTokens = reply.usage?.prompt_tokens_details?.cached_tokens;
      served.push({ worker: response.headers.get("x-warmpath-worker"), cachedTokens });
      const record = live.router.log.get(Number(response.headers.get("x-warmpath-decision")));
      expect(record).toMatchObject({
        chosen: served[turn].worker,
        policy: "kv-cost",
        promptTokens: reply.usage?.prompt_tokens,
      });
      expect(record?.observedCachedTokens).toBe(cachedTokens);
      expect(record?.predictedCachedTokens).toBe(cachedTokens);
    }
    expect(new Set(served.map(({ worker }) => worker)).size).toBe(1);
    // System prompt, question and answer of the turn before, with their marks, in full blocks of 16.
    expect(served.map(({ cachedTokens }) => cachedTokens)).toEqual([0, 192, 304, 400]);
    expect(live.router.accounting).toMatchObject({ offered: 4, completed: 4, unfinished: 0 });
  });

  test("round-robin sends the same conversation to the workers in turn", async () => {
    const { client } = await start({ policy: "round-robin" });
    const chosen: (string | null)[] = [];
    for (let turn = 0; turn < 4; turn++) {
      const messages: Message[] = [{ role: "user", content: words(60, "same") }];
      const request = client.chat.completions.create({ model: MODEL, messages, max_tokens: 2 });
      chosen.push((await request.withResponse()).response.headers.get("x-warmpath-worker"));
    }
    expect(chosen[0]).not.toBe(chosen[1]);
    expect(chosen.slice(2)).toEqual(chosen.slice(0, 2));
  });

  test("a stream arrives token by token with its usage, and says the same as the whole answer", async () => {
    const { fleet: live, client } = await start();
    const messages: Message[] = [{ role: "user", content: words(50, "stream") }];
    const stream = await client.chat.completions.create({
      model: MODEL,
      messages,
      max_tokens: 12,
      stream: true,
      stream_options: { include_usage: true },
    });
    const pieces: string[] = [];
    let cachedTokens: number | undefined;
    for await (const chunk of stream) {
      const piece = chunk.choices[0]?.delta.content;
      if (typeof piece === "string" && piece !== "") pieces.push(piece);
      cachedTokens = chunk.usage?.prompt_tokens_details?.cached_tokens ?? cachedTokens;
    }
    expect(pieces).toHaveLength(12);
    expect(cachedTokens).toBe(0);
    const [record] = live.router.log.latest(1);
    expect(record.firstTokenNs).toBeGreaterThan(0);
    expect(record.observedCachedTokens).toBe(0);
    const whole = await client.chat.completions.create({ model: MODEL, messages, max_tokens: 12 });
    expect(whole.choices[0].message.content).toBe(pieces.join(""));
  });

  test("text completions work like chats", async () => {
    const { client } = await start();
    const whole = await client.completions.create({ model: MODEL, prompt: "once upon a time", max_tokens: 5 });
    expect(whole.choices[0].text.trim().split(" ")).toHaveLength(5);
    let text = "";
    const stream = await client.completions.create({
      model: MODEL,
      prompt: "once upon a time",
      max_tokens: 5,
      stream: true,
    });
    for await (const chunk of stream) text += chunk.choices[0]?.text ?? "";
    expect(text).toBe(whole.choices[0].text);
  });

  test("models and health can be asked for", async () => {
    const { fleet: live, client } = await start();
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual([MODEL]);
    expect((await fetch(`${live.url}/health`)).status).toBe(200);
  });
});

describe("the slice when things go wrong", () => {
  test("a request to a worker that is gone is served by the other one", async () => {
    const { fleet: live, client } = await start();
    const messages: Message[] = [{ role: "user", content: words(80, "keep") }];
    const first = await client.chat.completions.create({ model: MODEL, messages, max_tokens: 4 }).withResponse();
    const killed = String(first.response.headers.get("x-warmpath-worker"));
    await live.worker(killed).kill();
    const second = await client.chat.completions.create({ model: MODEL, messages, max_tokens: 4 }).withResponse();
    expect(second.response.headers.get("x-warmpath-worker")).not.toBe(killed);
    expect(second.data.choices[0].message.content).toBe(first.data.choices[0].message.content);
    const [retry, failure] = live.router.log.latest(2);
    expect(failure).toMatchObject({ chosen: killed, attempt: 1, request: retry.request });
    expect(retry).toMatchObject({ attempt: 2, filtered: { notReady: [], tried: [killed], busy: [] } });
    expect(live.router.accounting).toMatchObject({ offered: 2, completed: 2, failed: 0, unfinished: 0 });
  });

  test("a worker that dies before its first byte costs the client nothing but time", async () => {
    const engines = new WatchedEngines();
    engines.isHeld = true;
    const { fleet: live, client } = await start({ wrapEngine: engines.wrap });
    const submitted = once(engines, "submitted");
    const messages: Message[] = [{ role: "user", content: words(80, "slow") }];
    const reply = client.chat.completions
      .create({ model: MODEL, messages, max_tokens: 4, stream: true })
      .withResponse();
    await submitted;
    engines.isHeld = false;
    const [{ chosen }] = live.router.log.latest(1);
    await live.worker(String(chosen)).kill();
    const { data: stream, response } = await reply;
    let pieces = 0;
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) pieces++;
    expect(pieces).toBe(4);
    expect(response.headers.get("x-warmpath-worker")).not.toBe(chosen);
    expect(live.router.accounting).toMatchObject({ offered: 1, completed: 1, unfinished: 0 });
  });

  test("a worker that dies in mid-answer fails the request once, and the client is told", async () => {
    const { fleet: live, client } = await start({ decodeMsPerToken: 60_000 });
    const { data: stream, response } = await client.chat.completions
      .create({ model: MODEL, messages: [{ role: "user", content: "hello" }], max_tokens: 9, stream: true })
      .withResponse();
    const read = (async (): Promise<void> => {
      for await (const chunk of stream) {
        if (chunk.choices[0]?.delta.content)
          await live.worker(String(response.headers.get("x-warmpath-worker"))).kill();
      }
    })();
    await expect(read).rejects.toThrow("the worker failed");
    expect(live.router.accounting).toMatchObject({ offered: 1, failed: 1, completed: 0, unfinished: 0 });
  });

  test("with clients leaving and a worker dying under load, the accounts are what the clients counted", async () => {
    const { fleet: live, client } = await start({ workers: 3, batchSlots: 8, decodeMsPerToken: 2 });
    const ask = (i: number, limit: number): ReturnType<typeof streamOf> =>
      streamOf(client, words(60, `q${i % 9}-`), limit);
    const leaving = [...Array(8).keys()].map(async (i) => {
      for await (const _ of await ask(i, 100_000)) break;
    });
    await Promise.all(leaving);
    const counted = { completed: 0, failed: 0 };
    let chunks = 0;
    await Promise.all(
      [...Array(60).keys()].map(async (i) => {
        try {
          for await (const _ of await ask(i, 20)) if (++chunks === 50) await live.worker("worker-2").kill();
          counted.completed++;
        } catch {
          counted.failed++;
        }
      }),
    );
    await vi.waitFor(() => expect(live.router.accounting.unfinished).toBe(0));
    expect(live.router.accounting).toMatchObject({ offered: 68, cancelled: 8, shed: 0, rejected: 0, ...counted });
    expect(counted.failed).toBeGreaterThan(0);
    expect(counted.completed).toBeGreaterThan(0);
    for (const replica of live.router.fleet.indices()) {
      expect(live.router.describeLoad(replica).modelled).toMatchObject({ inFlight: 0, activeBlocks: 0 });
    }
  });

  test("without a worker left the failure is a 502, and the request is accounted once", async () => {
    const { fleet: live, client } = await start();
    await Promise.all([...live.workers.values()].map((worker) => worker.kill()));
    const error = await failureOf(client.completions.create({ model: MODEL, prompt: "hello" }));
    expect(error).toMatchObject({ status: 502, code: "worker_failed", type: "server_error" });
    expect(live.router.accounting).toMatchObject({ offered: 1, failed: 1, unfinished: 0 });
  });

  test("a client that leaves cancels its request, at the worker too", async () => {
    const engines = new WatchedEngines();
    const { fleet: live, client } = await start({ decodeMsPerToken: 60_000, wrapEngine: engines.wrap });
    const cancelled = once(engines, "cancelled");
    const stream = await client.chat.completions.create({
      model: MODEL,
      messages: [{ role: "user", content: "hello" }],
      max_tokens: 9,
      stream: true,
    });
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    await cancelled;
    expect(live.router.accounting).toMatchObject({ offered: 1, cancelled: 1, unfinished: 0 });
    expect(live.router.fleet.indices().map((replica) => live.router.describeLoad(replica).modelled.inFlight)).toEqual([
      0, 0,
    ]);
  });

  test("overload is a 429 that says which knob, which value, and when to come again", async () => {
    const engines = new WatchedEngines();
    engines.isHeld = true;
    const { fleet: live, client } = await start({
      workers: 1,
      batchSlots: 1,
      admission: { mode: "shed" },
      wrapEngine: engines.wrap,
    });
    const submitted = once(engines, "submitted");
    const leave = new AbortController();
    const busy = failureOf(client.completions.create({ model: MODEL, prompt: "first" }, { signal: leave.signal }));
    await submitted;
    const error = await failureOf(client.completions.create({ model: MODEL, prompt: "second" }));
    expect(error).toMatchObject({ status: 429, code: "overloaded", type: "overloaded_error" });
    expect(Number(error.headers?.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(error.error).toMatchObject({ details: { knob: "batchSlotsFraction", value: 1, threshold: 1 } });
    const cancelled = once(engines, "cancelled");
    leave.abort();
    await Promise.all([busy, cancelled]);
    expect(live.router.accounting).toMatchObject({ offered: 2, shed: 1, cancelled: 1, unfinished: 0 });
  });

  test("a request that waits in the queue goes out when a place is free", async () => {
    const engines = new WatchedEngines();
    engines.isHeld = true;
    const { fleet: live, client } = await start({
      workers: 1,
      batchSlots: 1,
      admission: { mode: "queue", watermarks: { batchSlotsFraction: 1 } },
      wrapEngine: engines.wrap,
    });
    const submitted = once(engines, "submitted");
    const leave = new AbortController();
    const first = failureOf(client.completions.create({ model: MODEL, prompt: "first" }, { signal: leave.signal }));
    await submitted;
    engines.isHeld = false;
    const second = client.completions.create({ model: MODEL, prompt: "second", max_tokens: 3 });
    await expect.poll(() => live.router.queued).toBe(1);
    leave.abort();
    await first;
    expect((await second).choices[0].text.trim().split(" ")).toHaveLength(3);
    expect(live.router.accounting).toMatchObject({ offered: 2, completed: 1, cancelled: 1, unfinished: 0 });
  });

  test("without any worker the answer is a 503", async () => {
    const { fleet: live, client } = await start({ workers: 0 });
    const error = await failureOf(client.completions.create({ model: MODEL, prompt: "hello" }));
    expect(error).toMatchObject({ status: 503, code: "no-eligible-worker" });
    expect(live.router.accounting).toMatchObject({ offered: 1, shed: 1 });
  });

  test.each([
    { body: "{not json", status: 400, code: "invalid_json", param: null },
    { body: '{"model":"m"}', status: 400, code: "invalid_request", param: "messages" },
    {
      body: '{"model":"m","messages":[{"role":"user"}],"max_tokens":-1}',
      status: 400,
      code: "invalid_request",
      param: "max_tokens",
    },
  ])("the body $body is refused in OpenAI's shape and never offered", async ({ body, status, code, param }) => {
    const { fleet: live } = await start();
    const response = await fetch(`${live.url}/v1/chat/completions`, { method: "POST", body });
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({
      error: { message: expect.any(String) as string, type: "invalid_request_error", param, code },
    });
    expect(live.router.accounting.offered).toBe(0);
  });

  test("closing lets an answer under way finish", async () => {
    const engines = new WatchedEngines();
    const { fleet: live, client } = await start({ decodeMsPerToken: 5, wrapEngine: engines.wrap });
    const submitted = once(engines, "submitted");
    const reply = client.completions.create({ model: MODEL, prompt: "hello", max_tokens: 20 });
    await submitted;
    await live.gateway.close();
    expect((await reply).choices[0].finish_reason).toBe("length");
    expect(live.router.accounting).toMatchObject({ offered: 1, completed: 1, unfinished: 0 });
  });
});

function streamOf(client: OpenAI, content: string, limit: number): Promise<AsyncIterable<unknown>> {
  const messages: Message[] = [{ role: "user", content }];
  return client.chat.completions.create({ model: MODEL, messages, max_tokens: limit, stream: true });
}

/** The error that a call to the gateway ends with. */
async function failureOf(call: Promise<unknown>): Promise<APIError & { readonly error?: unknown }> {
  try {
    await call;
  } catch (error) {
    if (error instanceof APIError) return error;
    throw error;
  }
  throw new Error("the call succeeded");
}
