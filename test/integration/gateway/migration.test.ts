/** Streams of the official client while workers are killed, hang and cut connections under them. */
import { dirname } from "node:path";
import type OpenAI from "openai";
import { afterEach, describe, expect, test, vi } from "vitest";
import { qwenFile } from "../../support/model-files.ts";
import { type GatewayUnderTest, startTestGateway } from "../../support/running-gateway.ts";
import { type WorkerUnderTest, startTestWorker, words } from "../../support/running-worker.ts";
import { MODEL, ProgramFleet } from "./program-fleet.ts";

type Chunk = OpenAI.Chat.ChatCompletionChunk;
interface Decision {
  readonly decision: number;
  readonly chosen: string;
  readonly continues: number | null;
}

const open: { close(): Promise<unknown> }[] = [];

afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close();
});

/** What a client made of a stream. */
interface Heard {
  readonly text: string;
  readonly ids: readonly string[];
  readonly created: readonly number[];
  readonly roles: number;
  readonly finishes: readonly string[];
  readonly usage: OpenAI.CompletionUsage | undefined;
}

async function listen(stream: AsyncIterable<Chunk>, heard: () => void = () => {}): Promise<Heard> {
  const chunks: Chunk[] = [];
  for await (const chunk of stream) {
    chunks.push(chunk);
    if (chunk.choices[0]?.delta.content) heard();
  }
  return {
    text: chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join(""),
    ids: [...new Set(chunks.map(({ id }) => id))],
    created: [...new Set(chunks.map(({ created }) => created))],
    roles: chunks.filter(({ choices }) => choices[0]?.delta.role !== undefined).length,
    finishes: chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? []),
    usage: chunks.find(({ usage }) => usage)?.usage ?? undefined,
  };
}

function ask(client: OpenAI, topic: string, limit?: number): Promise<AsyncIterable<Chunk>> {
  return client.chat.completions.create({
    model: MODEL,
    messages: [{ role: "user", content: words(40, topic) }],
    ...(limit !== undefined && { max_tokens: limit }),
    stream: true,
    stream_options: { include_usage: true },
  });
}

async function wholeAnswer(client: OpenAI, topic: string, limit?: number): Promise<OpenAI.Chat.ChatCompletion> {
  const messages = [{ role: "user", content: words(40, topic) } as const];
  return client.chat.completions.create({ model: MODEL, messages, ...(limit !== undefined && { max_tokens: limit }) });
}

describe.each([["1"], ["2"]])("a worker that is killed under streams, with %s process(es)", (processes) => {
  test("is not noticed by clients: each has the answer it would have had", async () => {
    const gatewayFlags = ["--migrate-streams", "--policy", "round-robin", "--processes", processes];
    const fleet = await ProgramFleet.start({ events: "http", gatewayFlags });
    open.push(fleet);
    const { client, workers } = fleet;
    // Its process ends when it has streamed so many tokens, less than half of what it is asked for.
    const crash = JSON.stringify({ crash: 300 });
    await fetch(`${workers.get("b")?.url}/debug/faults`, { method: "POST", body: crash });
    // Some have a limit, the others end by themselves; both must end where they would have.
    const limits = Array.from({ length: 16 }, (_, i) => (i % 2 === 0 ? 150 : undefined));
    const answers = await Promise.all(limits.map(async (limit, i) => listen(await ask(client, `topic${i}`, limit))));
    for (const [i, heard] of answers.entries()) {
      const whole = await wholeAnswer(client, `topic${i}`, limits[i]);
      expect(heard.text).toBe(whole.choices[0].message.content);
      expect(heard.finishes).toEqual([whole.choices[0].finish_reason]);
      expect([heard.ids.length, heard.created.length, heard.roles]).toEqual([1, 1, 1]);
      const { prompt_tokens, completion_tokens, total_tokens } = heard.usage ?? {};
      expect(whole.usage).toMatchObject({ prompt_tokens, completion_tokens, total_tokens });
    }
    const count = 2 * answers.length;
    await vi.waitFor(
      async () =>
        expect(await fleet.admin("/admin/accounts")).toMatchObject({ offered: count, completed: count, unfinished: 0 }),
      10_000,
    );
    const metrics = await (await fetch(`${fleet.gateway.url}/metrics`)).text();
    const migrated = [...metrics.matchAll(/^warmpath_migrations_total\{.*\} (\d+)$/gm)];
    expect(migrated.reduce((sum, [, number]) => sum + Number(number), 0)).toBeGreaterThan(0);
    const { decisions } = await fleet.admin<{ decisions: Decision[] }>("/admin/decisions?limit=1000");
    const chosen = new Map(decisions.map(({ decision, chosen: worker }) => [decision, worker]));
    const continued = decisions.filter(({ continues }) => continues !== null);
    expect(continued.length).toBeGreaterThan(0);
    for (const { continues, chosen: worker } of continued) expect([worker, chosen.get(continues!)]).toEqual(["a", "b"]);
  });
});

describe("a stream in trouble", () => {
  async function startFleet(more: object = {}): Promise<{ gateway: GatewayUnderTest; workers: WorkerUnderTest[] }> {
    const workers = await Promise.all(["a", "b"].map((name) => startTestWorker({ name })));
    open.push(...workers.map((worker) => ({ close: () => worker.close(0) })));
    const gateway = await startTestGateway({
      worker: workers.map(({ url }, i) => `${"ab"[i]}=${url}`),
      policy: "round-robin",
      healthSeconds: 0.1,
      indexBlocks: 65_536,
      ...more,
    });
    open.push(gateway);
    return { gateway, workers };
  }

  test.each([
    ["is cut by its worker", { "cut-stream": 1 }],
    ["belongs to a worker that hangs", { hang: "engine" }],
  ])("that %s is continued on the client's request, text and chat alike", async (_, fault) => {
    const { gateway, workers } = await startFleet({ gapSeconds: 0.5 });
    const { client, decider } = gateway;
    const prompt = words(30, "story");
    const messages = [{ role: "user", content: prompt } as const];
    const request = { model: MODEL, max_tokens: 100 };
    const chat = await client.chat.completions.create({ ...request, messages });
    const text = await client.completions.create({ ...request, prompt });
    /** Streams until the first word is heard from whichever worker, which then gets the trouble of the case. */
    const troubled = async (stream: (heard: () => void) => Promise<string>): Promise<string> => {
      await expect.poll(() => decider.readiness().workers.ready, { timeout: 10_000 }).toBe(2);
      // So slow that none can be done before it has its trouble.
      for (const worker of workers) await worker.post("/debug/faults", { slow: 300 });
      let isHeard = false;
      const said = await stream(() => {
        if (isHeard) return;
        isHeard = true;
        for (const [i, worker] of workers.entries()) {
          const isServing = decider.router.load.columns.inFlight[i] > 0;
          void worker.post("/debug/faults", { slow: null, ...(isServing && fault) });
        }
      });
      const mended = Object.fromEntries(Object.keys(fault).map((name) => [name, null]));
      for (const worker of workers) await worker.post("/debug/faults", mended);
      return said;
    };
    const wish = { headers: { "x-warmpath-migrate": "true" } };
    const saidInChat = await troubled(async (heard) => {
      const stream = await client.chat.completions.create({ ...request, messages, stream: true }, wish);
      return (await listen(stream, heard)).text;
    });
    expect(saidInChat).toBe(chat.choices[0].message.content);
    const saidAsText = await troubled(async (heard) => {
      let said = "";
      for await (const chunk of await client.completions.create({ ...request, prompt, stream: true }, wish)) {
        said += chunk.choices[0]?.text ?? "";
        heard();
      }
      return said;
    });
    expect(saidAsText).toBe(text.choices[0].text);
    expect(decider.router.accounting).toMatchObject({ offered: 4, completed: 4, unfinished: 0 });
    expect(decider.router.log.latest(10).filter(({ continues }) => continues !== null)).toHaveLength(2);
  });

  test("fails without the wish to have it continued", async () => {
    const { gateway, workers } = await startFleet();
    for (const worker of workers) await worker.post("/debug/faults", { slow: 300 });
    const stream = await ask(gateway.client, "x", 50);
    const cut = (): void => {
      for (const worker of workers) void worker.post("/debug/faults", { "cut-stream": 1 });
    };
    await expect(listen(stream, cut)).rejects.toThrow("the worker failed");
    expect(gateway.decider.router.accounting).toMatchObject({ offered: 1, failed: 1, unfinished: 0 });
  });
});

describe.each([
  ["words", {}],
  ["a model's tokens", { tokenizer: dirname(qwenFile("tokenizer.json")) }],
])("a simulated worker with %s", (_, flags) => {
  test("continues half an answer with the other half, and finds prompt and half in its cache", async () => {
    const worker = await startTestWorker(flags);
    open.push({ close: () => worker.close(0) });
    const request = { model: MODEL, max_tokens: 60 };
    const messages = [{ role: "user", content: words(40, "half") } as const];
    const whole = await worker.client.chat.completions.create({ ...request, messages });
    const said = whole.choices[0].message.content?.split(/(?= )/) ?? [];
    const half = said.slice(0, 40).join("");
    const body = {
      ...request,
      max_tokens: 20,
      messages: [...messages, { role: "assistant", content: half }],
      continue_final_message: true,
      add_generation_prompt: false,
    };
    const rest = (await (await worker.post("/v1/chat/completions", body)).json()) as OpenAI.Chat.ChatCompletion;
    expect(half + rest.choices[0].message.content).toBe(whole.choices[0].message.content);
    expect(rest.usage?.total_tokens).toBe(whole.usage?.total_tokens);
    expect(rest.usage?.prompt_tokens).toBe((whole.usage?.prompt_tokens ?? 0) + 40);
    expect(rest.usage?.prompt_tokens_details?.cached_tokens).toBeGreaterThan((rest.usage?.prompt_tokens ?? 0) - 17);
    const refused = await Promise.all([
      worker.post("/v1/chat/completions", { ...body, add_generation_prompt: true }),
      worker.post("/v1/chat/completions", { ...body, messages }),
    ]);
    expect(refused.map(({ status }) => status)).toEqual([400, 400]);
  });
});

describe("a worker's circuit", () => {
  test("opens under failures, lets one request through, and closes when that succeeds", async () => {
    const workers = await Promise.all(["a", "b"].map((name) => startTestWorker({ name })));
    open.push(...workers.map((worker) => ({ close: () => worker.close(0) })));
    const gateway = await startTestGateway({
      worker: workers.map(({ url }, i) => `${"ab"[i]}=${url}`),
      policy: "round-robin",
      healthSeconds: 0.05,
      indexBlocks: 65_536,
    });
    open.push(gateway);
    const { client } = gateway;
    const circuit = async (): Promise<string> => {
      const answer = await fetch(`${gateway.adminUrl}/admin/workers/a`);
      return ((await answer.json()) as { workers: { circuit: string }[] }).workers[0].circuit;
    };
    const complete = (): Promise<unknown> => client.completions.create({ model: MODEL, prompt: "x", max_tokens: 2 });
    await workers[0].post("/debug/faults", { refuse: 500 });
    for (let i = 0; i < 6; i++) await complete();
    expect(await circuit()).toBe("open");
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics).toContain('warmpath_worker_circuit_state{policy="round-robin",worker="a",state="open"} 1');
    await workers[0].post("/debug/faults", { refuse: null, hang: "engine" });
    await expect.poll(circuit, { timeout: 10_000 }).toBe("half-open");
    // Whoever is on trial has one request, however many come.
    const waiting = Array.from({ length: 8 }, () => complete());
    const inFlight = gateway.decider.router.load.columns;
    await expect.poll(() => gateway.decider.router.accounting.unfinished).toBe(1);
    expect(inFlight.inFlight[0]).toBe(1);
    await workers[0].post("/debug/faults", { hang: null });
    await Promise.all(waiting);
    expect(await circuit()).toBe("closed");
  });
});
