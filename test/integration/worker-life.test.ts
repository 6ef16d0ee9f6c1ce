/** A simulated worker among others: its events, its place in a fleet, its faults and its end. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type OpenAI from "openai";
import { afterEach, describe, expect, test, vi } from "vitest";
import { sequenceHashes } from "../../src/core/hash.ts";
import { KvIndex } from "../../src/core/kv-index/kv-index.ts";
import { LeaseRegistry } from "../../src/planes/discovery/lease-registry.ts";
import { HttpEventPlane } from "../../src/planes/event/http.ts";
import type { EventAddress, EventPlane } from "../../src/planes/event/types.ts";
import { ZmqEventPlane } from "../../src/planes/event/zmq.ts";
import { WordTokenizer } from "../../src/tokenizer/word-tokenizer.ts";
import { startTestWorker, type WorkerUnderTest, words } from "../support/running-worker.ts";

const MODEL = "llama-3.1-8b";
const BLOCK_TOKENS = 16;
let worker: WorkerUnderTest | undefined;
const closing: (() => Promise<unknown>)[] = [];

async function start(...options: Parameters<typeof startTestWorker>): Promise<WorkerUnderTest> {
  worker = await startTestWorker(...options);
  return worker;
}

afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
  await worker?.close(0);
  worker = undefined;
});

const question = (content: string): OpenAI.Chat.ChatCompletionMessageParam[] => [{ role: "user", content }];

async function engineOf({ get }: WorkerUnderTest): Promise<{ running: number; waiting: number; heldBlocks: number }> {
  return (await (await get("/debug/engine")).json()) as { running: number; waiting: number; heldBlocks: number };
}

/** Follows a worker's cache as a router does, and says how much of a prompt is confirmed to be there. */
function follow(
  plane: EventPlane,
  address: EventAddress,
): { confirmedBlocks: (content: string) => number; caughtUp: Promise<void> } {
  const index = new KvIndex({ maxReplicas: 1, maxBlocks: 10_000 });
  let isCaughtUp = (): void => {};
  const caughtUp = new Promise<void>((resolve) => (isCaughtUp = resolve));
  const subscription = plane.subscribe(
    "worker",
    {
      event: (event) => index.apply(0, event.tier, event),
      snapshot: ({ runs }) => {
        index.clearReplica(0);
        index.restore(0, runs);
      },
      replayUnavailable: () => {},
      load: () => {},
      caughtUp: () => isCaughtUp(),
    },
    address,
  );
  subscription.catchUp();
  closing.push(() => subscription.close().then(() => plane.close()));
  const tokenizer = new WordTokenizer();
  return {
    caughtUp,
    confirmedBlocks: (content) => {
      const tokens = tokenizer.encode({ kind: "chat", messages: [{ role: "user", content }] });
      const sequence = sequenceHashes(tokens, BLOCK_TOKENS);
      return index.match(sequence, sequence.length / 2).confirmed[0];
    },
  };
}

describe("KV events", () => {
  const ZMQ = { endpoint: "tcp://127.0.0.1:*", replayEndpoint: "tcp://127.0.0.1:*", topic: "", replayDepth: 100 };

  test("over HTTP tell a router what is cached, before it came and after", async () => {
    const { client, url } = await start();
    const ask = (content: string): Promise<unknown> =>
      client.chat.completions.create({ model: MODEL, messages: question(content), max_tokens: 4 });
    await ask(words(100, "before"));
    const { caughtUp, confirmedBlocks } = follow(new HttpEventPlane(), { url });
    await caughtUp;
    await ask(words(80, "after"));
    await vi.waitFor(() => expect(confirmedBlocks(words(80, "after"))).toBe(5));
    expect(confirmedBlocks(words(100, "before"))).toBe(6);
  });

  test("over ZMQ tell it by tokens, as vLLM does", async () => {
    const { client, zmq } = await start({}, { zmq: ZMQ });
    await client.chat.completions.create({ model: MODEL, messages: question(words(100, "before")), max_tokens: 4 });
    const plane = await ZmqEventPlane.load({ blockTokens: BLOCK_TOKENS });
    const { confirmedBlocks, caughtUp } = follow(plane, { url: zmq?.endpoint ?? "", replayUrl: zmq?.replayEndpoint });
    await caughtUp;
    await vi.waitFor(() => expect(confirmedBlocks(words(100, "before"))).toBe(6));
  });

  test("over ZMQ at an address that cannot be had end the worker with that address", async () => {
    const zmq = { endpoint: "tcp://192.0.2.1:5557", replayEndpoint: undefined, topic: "", replayDepth: 1 };
    await expect(start({}, { zmq })).rejects.toThrow(/^cannot listen on tcp:\/\/192\.0\.2\.1:5557: /);
  });

  test("are not made unless they are to be published", async () => {
    const { get } = await start({ publishEventsAndMetrics: false });
    expect((await get("/events")).status).toBe(404);
  });
});

describe("a worker that registers", () => {
  test("is in the registry with what a router must know, and leaves it when it stops", async () => {
    const registry = new LeaseRegistry();
    const server = createServer((request, response) => void registry.handle(request, response));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    closing.push(() => {
      server.close();
      return registry.close();
    });
    const register = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const seen: string[] = [];
    await registry.watch({
      appeared: ({ name, model, batchSlots, blockTokens, events }) =>
        seen.push(`${name} ${model} ${batchSlots} ${blockTokens} ${events?.url}`),
      changed: () => {},
      left: (name) => seen.push(`${name} left`),
    });
    const { close, url } = await start({ name: "a", register, maxBatchSize: 64 });
    await close(0);
    worker = undefined;
    expect(seen).toEqual([`a ${MODEL} 64 16 ${url}`, "a left"]);
  });
});

describe("a client that leaves", () => {
  test("frees what its request held", async () => {
    const running = await start({ speed: 1 });
    const leave = new AbortController();
    const stream = await running.client.chat.completions.create(
      { model: MODEL, messages: question(words(100, "x")), max_tokens: 1000, stream: true },
      { signal: leave.signal },
    );
    for await (const { choices } of stream) if (choices[0]?.delta.content !== "") break;
    leave.abort();
    await vi.waitFor(async () =>
      expect(await engineOf(running)).toMatchObject({ running: 0, waiting: 0, heldBlocks: 0 }),
    );
  });
});

describe("faults", () => {
  const ask = ({ post }: WorkerUnderTest, maxTokens = 8): Promise<Response> =>
    post("/v1/chat/completions", { model: MODEL, messages: question("x"), max_tokens: maxTokens, stream: true });

  test("refuse: a status of choice, until it is mended", async () => {
    const running = await start({}, { faults: { refuse: 429 } });
    const refused = await ask(running);
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ error: { code: "fault" } });
    expect(await (await running.post("/debug/faults", { refuse: null })).json()).toMatchObject({ refuse: null });
    expect(await (await ask(running)).text()).toMatch(/\[DONE\]\n\n$/);
  });

  test("cut-stream: the connection goes in mid-answer", async () => {
    const running = await start({ speed: 1 });
    await running.post("/debug/faults", { "cut-stream": 3 });
    // On a busy machine the cut may come before the client has read even the head of the answer.
    const answer = ask(running, 100).then((response) => response.text());
    await expect(answer).rejects.toThrow(/terminated|aborted|fetch failed/);
    await vi.waitFor(async () => expect(await engineOf(running)).toMatchObject({ running: 0, heldBlocks: 0 }));
  });

  test("cut-stream: an answer that is cut at its last token has ended once", async () => {
    const running = await start();
    await running.post("/debug/faults", { "cut-stream": 3 });
    const answer = ask(running, 3).then((response) => response.text());
    await expect(answer).rejects.toThrow(/terminated|aborted|fetch failed/);
    const ended = async (): Promise<string[]> =>
      (await (await running.get("/metrics")).text())
        .split("\n")
        .filter((line) => line.startsWith("vllm:request_success_total{"))
        .map((line) => `${/finished_reason="(\w+)"/.exec(line)?.[1]} ${line.split(" ").at(-1)}`);
    await vi.waitFor(async () => expect(await ended()).toEqual(["abort 1"]));
  });

  test("hang: nothing comes until it is mended, then all of it", async () => {
    const running = await start();
    await running.post("/debug/faults", { hang: "engine" });
    const answer = ask(running);
    await vi.waitFor(async () => expect(await engineOf(running)).toMatchObject({ running: 1 }));
    expect((await running.get("/health")).status).toBe(200);
    await running.post("/debug/faults", { hang: null });
    expect(await (await answer).text()).toMatch(/\[DONE\]\n\n$/);
  });

  test("hang of all: not even health is answered", async () => {
    const running = await start({}, { faults: { hang: "all" } });
    const health = running.get("/health").then(({ status }) => status);
    const first = await Promise.race([health, running.get("/debug/faults").then(() => "silence")]);
    expect(first).toBe("silence");
    await running.post("/debug/faults", { hang: null });
    expect((await running.get("/health")).status).toBe(200);
    health.catch(() => {});
  });

  test("crash: after so many tokens", async () => {
    const running = await start({}, { faults: { crash: 5 } });
    await (await ask(running, 4)).text();
    expect(running.crashes()).toBe(0);
    await (await ask(running, 1)).text();
    expect(running.crashes()).toBe(1);
  });

  test("drop-events: lost on their way, and to be had again", async () => {
    const running = await start({}, { faults: { "drop-events": 1 } });
    const response = await running.get("/events");
    const reader = response.body?.getReader();
    closing.push(() => reader?.cancel() ?? Promise.resolve());
    const range = "/events/range?from=0&to=0";
    const { incarnation } = (await (await running.get("/events/snapshot")).json()) as { incarnation: string };
    await (await running.post("/v1/completions", { model: MODEL, prompt: words(40, "x"), max_tokens: 1 })).text();
    expect((await running.get(`${range}&incarnation=${incarnation}`)).status).toBe(200);
    let streamed = "";
    // The load comes after the events that it is the consequence of.
    while (!streamed.includes('"running":')) streamed += new TextDecoder().decode((await reader?.read())?.value);
    expect(streamed).not.toContain("event: kv");
  });

  test("nonsense is refused, and nothing changes", async () => {
    const { get, post } = await start();
    expect((await post("/debug/faults", { slow: 0.5 })).status).toBe(400);
    expect((await post("/debug/faults", { sleepy: true })).status).toBe(400);
    const faults = (await (await get("/debug/faults")).json()) as object;
    expect(Object.values(faults)).toEqual([null, null, null, null, null, null]);
  });

  test("are out of reach where debugging is off", async () => {
    const { get } = await start({ debug: false });
    expect((await get("/debug/faults")).status).toBe(404);
  });
});

describe("a worker that stops", () => {
  const open = async (
    { client }: WorkerUnderTest,
    maxTokens: number,
  ): Promise<AsyncIterator<OpenAI.ChatCompletionChunk>> => {
    const stream = await client.chat.completions.create({
      model: MODEL,
      messages: question("x"),
      max_tokens: maxTokens,
      stream: true,
    });
    const chunks = stream[Symbol.asyncIterator]();
    await chunks.next();
    return chunks;
  };

  test("finishes its answers, refuses new ones, and says so to health checks", async () => {
    const running = await start({ speed: 4 });
    const chunks = await open(running, 300);
    // The answer waits until all questions have been asked, however busy the machine is.
    await running.post("/debug/faults", { hang: "engine" });
    const closed = running.close(30);
    await vi.waitFor(async () => expect((await running.get("/health")).status).toBe(503));
    const refused = await running.post("/v1/chat/completions", { model: MODEL, messages: question("y") });
    expect(await refused.json()).toMatchObject({ error: { code: "shutting_down" } });
    await running.post("/debug/faults", { hang: null });
    let last: OpenAI.ChatCompletionChunk | undefined;
    for (let chunk = await chunks.next(); chunk.done !== true; chunk = await chunks.next()) last = chunk.value;
    expect(last?.choices[0].finish_reason).toBe("length");
    await closed;
    worker = undefined;
  });

  test("cuts what takes too long, with an error that says why", async () => {
    const running = await start({ speed: 1 });
    const chunks = await open(running, 10_000);
    const closed = running.close(0);
    const drained = async (): Promise<void> => {
      for (let chunk = await chunks.next(); chunk.done !== true; chunk = await chunks.next());
    };
    await expect(drained()).rejects.toThrow("the worker shut down before the answer was whole");
    await closed;
    worker = undefined;
  });
});
