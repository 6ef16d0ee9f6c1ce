/** A simulated worker over real sockets: its API as clients see it. */
import type OpenAI from "openai";
import { afterEach, describe, expect, test, vi } from "vitest";
import { startTestWorker, type WorkerUnderTest, words } from "../support/running-worker.ts";

type Message = OpenAI.Chat.ChatCompletionMessageParam;

const MODEL = "llama-3.1-8b";
let worker: WorkerUnderTest | undefined;

async function start(...options: Parameters<typeof startTestWorker>): Promise<WorkerUnderTest> {
  worker = await startTestWorker(...options);
  return worker;
}

afterEach(async () => {
  await worker?.close(0);
  worker = undefined;
});

const question = (content: string): Message[] => [{ role: "user", content }];

describe("answers", () => {
  test("come whole or token by token, and say the same", async () => {
    const { client } = await start();
    const messages = question(words(50, "same"));
    const whole = await client.chat.completions.create({ model: MODEL, messages, max_tokens: 12 });
    const { content } = whole.choices[0].message;
    const stream = await client.chat.completions.create({
      model: MODEL,
      messages,
      max_tokens: 12,
      stream: true,
      stream_options: { include_usage: true },
    });
    const pieces: string[] = [];
    const reasons: string[] = [];
    let usage: OpenAI.CompletionUsage | null | undefined;
    for await (const { choices, usage: last } of stream) {
      const [choice] = choices;
      if (choice?.delta.content !== undefined && choice.delta.content !== "") pieces.push(choice.delta.content ?? "");
      if (choice?.finish_reason !== undefined && choice.finish_reason !== null) reasons.push(choice.finish_reason);
      usage = last;
    }
    expect(pieces).toHaveLength(12);
    expect(pieces.join("")).toBe(content);
    expect(reasons).toEqual(["length"]);
    expect(usage).toMatchObject({ prompt_tokens: 53, completion_tokens: 12, total_tokens: 65 });
    expect(whole.usage).toMatchObject({ prompt_tokens: 53, completion_tokens: 12 });
  });

  test("end by themselves without a limit, with a token that nobody sees", async () => {
    const { client } = await start({ answerTokens: 9 });
    const reply = await client.chat.completions.create({ model: MODEL, messages: question("how are you") });
    expect(reply.choices[0]).toMatchObject({ finish_reason: "stop" });
    expect(reply.choices[0].message.content?.split(" ")).toHaveLength(9);
    expect(reply.usage?.completion_tokens).toBe(10);
  });

  test("without a limit end where a sequence does, as those of engines do", async () => {
    const { client, post } = await start({ answerTokens: 30, maxSeqLen: 100 });
    const prompt = words(80, "long");
    const reply = await client.completions.create({ model: MODEL, prompt });
    expect(reply.choices[0].finish_reason).toBe("length");
    expect(reply.usage).toMatchObject({ prompt_tokens: 80, completion_tokens: 20 });
    const whole = await client.completions.create({ model: MODEL, prompt: words(69, "long") });
    expect(whole.choices[0].finish_reason).toBe("stop");
    const full = await post("/v1/completions", { model: MODEL, prompt: words(100, "long") });
    expect(await full.json()).toMatchObject({ error: { code: "context_length_exceeded" } });
  });

  test("end before a stop, which is generated all the same", async () => {
    const { client } = await start();
    const messages = question(words(20, "stop"));
    const whole = await client.chat.completions.create({ model: MODEL, messages, max_tokens: 30 });
    const said = whole.choices[0].message.content?.split(" ") ?? [];
    const stop = ` ${said[10]} ${said[11]}`;
    const cut = await client.chat.completions.create({
      model: MODEL,
      messages,
      max_tokens: 30,
      stop: ["nowhere", stop],
    });
    expect(cut.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: said.slice(0, 10).join(" ") } });
    expect(cut.usage?.completion_tokens).toBe(12);
  });

  test("are no other ones with a draft model, which only says when", async () => {
    const drafting = await start({ speculativeModel: MODEL, numSpeculativeTokens: 4, modelPath: "llama-3.1-70b-fp8" });
    const request = { model: "llama-3.1-70b-fp8", messages: question(words(50, "same")), max_tokens: 40 };
    const drafted = await drafting.client.chat.completions.create(request);
    await drafting.close(0);
    const { client } = await start({ modelPath: "llama-3.1-70b-fp8" });
    const plain = await client.chat.completions.create(request);
    expect(drafted.choices[0].message).toEqual(plain.choices[0].message);
    expect(drafted.usage?.completion_tokens).toBe(40);
  });

  test("to texts and to tokens go on from them", async () => {
    const { client } = await start();
    const first = await client.completions.create({ model: MODEL, prompt: "one two", max_tokens: 4 });
    expect(first.choices[0].text).toMatch(/^( \w+){4}$/);
    const tokens = await client.completions.create({ model: MODEL, prompt: [1, 2, 3], max_tokens: 4 });
    expect(tokens.usage?.prompt_tokens).toBe(3);
  });
});

describe("the cache", () => {
  test.each([{ engine: "vllm" }, { engine: "sglang" }])(
    "of $engine holds every full block of the turn before, prompt and answer",
    async ({ engine }) => {
      const { client } = await start({ engine, kvBlockSize: 16, answerTokens: 37 });
      const messages: Message[] = [{ role: "system", content: words(90, "rule") }];
      let before = 0;
      for (let turn = 0; turn < 6; turn++) {
        messages.push({ role: "user", content: words(21 + turn, `turn${turn}-`) });
        const reply = await client.chat.completions.create({ model: MODEL, messages });
        const { content } = reply.choices[0].message;
        messages.push({ role: "assistant", content });
        const promptTokens = reply.usage?.prompt_tokens ?? 0;
        expect(reply.usage?.prompt_tokens_details?.cached_tokens).toBe(Math.floor(before / 16) * 16);
        before = promptTokens + 37;
      }
    },
  );

  test("of TensorRT-LLM also holds the beginning of the block after them", async () => {
    const { client } = await start({ engine: "trtllm", answerTokens: 37 });
    const messages = question(words(100, "rule"));
    const first = await client.chat.completions.create({ model: MODEL, messages });
    messages.push({ role: "assistant", content: first.choices[0].message.content }, ...question(words(50, "next")));
    const second = await client.chat.completions.create({ model: MODEL, messages });
    expect(second.usage?.prompt_tokens_details?.cached_tokens).toBe((first.usage?.prompt_tokens ?? 0) + 37);
  });

  test("tells salted prompts apart", async () => {
    const { post } = await start();
    const cached: unknown[] = [];
    for (const salt of ["a", "a", "b"]) {
      const body = { model: MODEL, messages: question(words(60, "salt")), max_tokens: 2, cache_salt: salt };
      const reply = (await (await post("/v1/chat/completions", body)).json()) as OpenAI.ChatCompletion;
      cached.push(reply.usage?.prompt_tokens_details?.cached_tokens);
    }
    expect(cached).toEqual([0, 48, 0]);
  });

  test("can be looked into", async () => {
    const { client, get } = await start();
    await client.chat.completions.create({ model: MODEL, messages: question(words(60, "look")), max_tokens: 20 });
    const dump = (await (await get("/debug/cache")).json()) as { blocks: number; runs: { hashes: string[] }[] };
    expect(dump.blocks).toBe(5);
    expect(dump.runs.flatMap(({ hashes }) => hashes).every((hash) => /^[0-9a-f]{16}$/.test(hash))).toBe(true);
    expect(await (await get("/debug/cache?hashes=false")).json()).not.toHaveProperty("runs.0.hashes");
  });
});

describe("what is asked of a worker", () => {
  test("its models, health and the tokens of a prompt", async () => {
    const { client, get, post } = await start({ servedModelName: "chat" });
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(["chat", MODEL]);
    expect(await (await get("/health")).json()).toEqual({ status: "ok" });
    const text = (await (await post("/tokenize", { prompt: "one two one" })).json()) as { tokens: number[] };
    expect(text).toMatchObject({ count: 3, max_model_len: 32_768 });
    expect(text.tokens[0]).toBe(text.tokens[2]);
    const chat = await (await post("/tokenize", { model: "chat", messages: question("one two") })).json();
    expect(chat).toMatchObject({ count: 5 });
  });

  test("metrics under vLLM's names, and GPUs that are marked as simulated", async () => {
    const { client, get } = await start({ tensorParallelSize: 2 });
    const messages = question(words(60, "same"));
    for (let i = 0; i < 2; i++) await client.chat.completions.create({ model: MODEL, messages, max_tokens: 10 });
    const lines = (await (await get("/metrics")).text()).split("\n");
    const value = (name: string): number =>
      Number(
        lines
          .find((line) => line.startsWith(`${name}{`) && line.includes(`model_name="${MODEL}"`))
          ?.split(" ")
          .at(-1),
      );
    expect({
      prompt: value("vllm:prompt_tokens_total"),
      output: value("vllm:generation_tokens_total"),
      hits: value("vllm:prefix_cache_hits_total"),
      ended: value("vllm:request_success_total"),
      firstTokens: value("vllm:time_to_first_token_seconds_count"),
      gaps: value("vllm:inter_token_latency_seconds_count"),
      running: value("vllm:num_requests_running"),
      generated: value("vllm:request_generation_tokens_sum"),
    }).toEqual({ prompt: 126, output: 20, hits: 48, ended: 2, firstTokens: 2, gaps: 18, running: 0, generated: 20 });
    const seconds = (name: string): number => value(`vllm:${name}_seconds_sum`);
    const stages = seconds("request_queue_time") + seconds("request_prefill_time") + seconds("request_decode_time");
    expect(stages).toBeCloseTo(seconds("e2e_request_latency"), 9);
    expect(seconds("request_inference_time")).toBeLessThanOrEqual(seconds("e2e_request_latency"));
    for (const name of ["GPU_UTIL", "FB_USED", "FB_FREE", "POWER_USAGE"]) {
      const series = lines.filter((line) => line.startsWith(`DCGM_FI_DEV_${name}{`));
      expect(series.map((line) => /gpu="(\d)".*simulated="true"/.exec(line)?.[1])).toEqual(["0", "1"]);
    }
  });
});

describe("requests that cannot be served", () => {
  test.each([
    ["a body that is not JSON", "{nonsense", 400, "invalid_json"],
    ["no messages", { model: MODEL }, 400, "invalid_request"],
    ["several choices", { model: MODEL, messages: question("x"), n: 2 }, 400, "invalid_request"],
    ["an empty stop", { model: MODEL, messages: question("x"), stop: [""] }, 400, "invalid_request"],
    ["another model", { model: "gpt", messages: question("x") }, 404, "model_not_found"],
    [
      "too long an answer",
      { model: MODEL, messages: question("x"), max_tokens: 40_000 },
      400,
      "context_length_exceeded",
    ],
    ["too large a body", { model: MODEL, messages: question(words(20_000, "long")) }, 413, "body_too_large"],
  ])("%s", async (_, body, status, code) => {
    const { post } = await start({ maxBodyMegabytes: 0.1 });
    const response = await post("/v1/chat/completions", body);
    const { error } = (await response.json()) as { error: { code: string; message: string; type: string } };
    expect({ status: response.status, code: error.code }).toEqual({ status, code });
    expect(error.type).toBe("invalid_request_error");
  });

  test("a prompt that a step could not take whole, where it may not be cut", async () => {
    const { post } = await start({ enableChunkedPrefill: false, maxNumTokens: 64, maxBatchSize: 8 });
    const response = await post("/v1/completions", { model: MODEL, prompt: words(100, "x"), max_tokens: 5 });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: {
        code: "request_too_large",
        message: "the prompt has 100 tokens, a step without chunked prefill takes 64",
      },
    });
  });

  test("more than may wait", async () => {
    const { client, get, post } = await start({ maxBatchSize: 1, maxQueueSize: 1 }, { faults: { hang: "engine" } });
    const requests = [0, 1].map(() =>
      client.chat.completions.create({ model: MODEL, messages: question("x"), max_tokens: 2 }),
    );
    await vi.waitFor(async () => {
      const { running, waiting } = (await (await get("/debug/engine")).json()) as { running: number; waiting: number };
      expect(running + waiting).toBe(2);
    });
    const response = await post("/v1/chat/completions", { model: MODEL, messages: question("y"), max_tokens: 2 });
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: { code: "queue_full" } });
    await post("/debug/faults", { hang: null });
    expect(await Promise.all(requests)).toHaveLength(2);
  });

  test("nothing else is served", async () => {
    const { get } = await start();
    expect((await get("/v1/embeddings")).status).toBe(404);
  });
});
