/** What clients of OpenAI see of a gateway in front of two workers, over each kind of events. */
import { execFile } from "node:child_process";
import { dirname } from "node:path";
import { promisify } from "node:util";
import type OpenAI from "openai";
import { APIError } from "openai";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { qwenFile } from "../../support/model-files.ts";
import { MODEL, ProgramFleet } from "./program-fleet.ts";

type Message = OpenAI.Chat.ChatCompletionMessageParam;
type Accounts = Record<"offered" | "completed" | "cancelled" | "rejected" | "unfinished", number>;

const run = promisify(execFile);

function words(count: number, topic: string): string {
  return Array.from({ length: count }, (_, i) => `${topic}${i}`).join(" ");
}

/** Has a conversation of four turns; what each found was predicted, and the index was live. */
async function conversation(fleet: ProgramFleet, topic: string): Promise<{ workers: number; cached: number[] }> {
  const messages: Message[] = [{ role: "system", content: words(100, `rule-${topic}-`) }];
  const chosen = new Set<string | null>();
  const cached: number[] = [];
  for (let turn = 0; turn < 4; turn++) {
    messages.push({ role: "user", content: words(60, `turn${turn}-`) });
    const request = fleet.client.chat.completions.create({ model: MODEL, messages, max_tokens: 40 });
    const { data: reply, response } = await request.withResponse();
    messages.push({ role: "assistant", content: reply.choices[0].message.content });
    chosen.add(response.headers.get("x-warmpath-worker"));
    cached.push(reply.usage?.prompt_tokens_details?.cached_tokens ?? Number.NaN);
    const decision = response.headers.get("x-warmpath-decision");
    const record = await fleet.admin<Record<string, unknown>>(`/admin/decisions/${decision}`);
    expect(record).toMatchObject({ observedCachedTokens: cached[turn] });
    // An engine over ZMQ has nothing to tell before its first block.
    if (turn > 0) expect(record["indexState"]).toBe("live");
    // The engine announces a block once it is full, which the gateway may hear a moment later.
    await vi.waitFor(async () => {
      const { blocks } = await fleet.admin<{ blocks: number }>("/admin/index");
      expect(blocks).toBeGreaterThanOrEqual(Math.floor((reply.usage?.total_tokens ?? 0) / 16) - 1);
    }, 10_000);
    expect(Math.abs((record["predictedCachedTokens"] as number) - cached[turn])).toBeLessThanOrEqual(16);
  }
  return { workers: chosen.size, cached };
}

describe.each(["http", "zmq"] as const)("clients of a gateway that hears events over %s", (events) => {
  let fleet: ProgramFleet;

  beforeAll(async () => {
    fleet = await ProgramFleet.start({ events });
  });
  afterAll(() => fleet.close());

  test("a growing conversation stays where its cache is, and what was predicted was found there", async () => {
    const { workers, cached } = await conversation(fleet, events);
    expect(workers).toBe(1);
    expect(cached).toEqual([0, expect.any(Number), expect.any(Number), expect.any(Number)]);
    expect(cached.toSorted((a, b) => a - b)).toEqual(cached);
    expect(cached[3]).toBeGreaterThan(300);
  });

  test("a stream says the same as the whole answer, with usage only where it was asked for", async () => {
    const request = {
      model: MODEL,
      messages: [{ role: "user", content: words(50, "stream") } as const],
      max_tokens: 12,
    };
    const whole = await fleet.client.chat.completions.create(request);
    for (const isAsked of [true, false]) {
      const options = isAsked ? { stream_options: { include_usage: true } } : {};
      const stream = await fleet.client.chat.completions.create({ ...request, stream: true, ...options });
      let text = "";
      let usages = 0;
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? "";
        if (chunk.usage) usages++;
      }
      expect(text).toBe(whole.choices[0].message.content);
      expect(usages).toBe(isAsked ? 1 : 0);
    }
  });

  test("text completions work, whole and streamed", async () => {
    const request = { model: MODEL, prompt: "once upon a time", max_tokens: 5 };
    const whole = await fleet.client.completions.create(request);
    let text = "";
    for await (const chunk of await fleet.client.completions.create({ ...request, stream: true })) {
      text += chunk.choices[0]?.text ?? "";
    }
    expect(text).toBe(whole.choices[0].text);
  });

  test("fields that the gateway does not know, tools among them, do not stop it", async () => {
    const reply = await fleet.client.chat.completions.create({
      model: MODEL,
      messages: [
        { role: "user", content: [{ type: "text", text: "what is the weather?" }] },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "1", type: "function", function: { name: "weather", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "1", content: "rain" },
      ],
      tools: [{ type: "function", function: { name: "weather", parameters: { type: "object", properties: {} } } }],
      tool_choice: "auto",
      max_completion_tokens: 4,
      metadata: { some: "thing" },
      user: "somebody",
    });
    expect(reply.choices).toHaveLength(1);
  });

  test("a client that leaves frees its place at once", async () => {
    const before = await fleet.admin<Accounts>("/admin/accounts");
    const messages: Message[] = [{ role: "user", content: "a long story" }];
    const stream = await fleet.client.chat.completions.create({
      model: MODEL,
      messages,
      max_tokens: 20_000,
      stream: true,
    });
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    await vi.waitFor(async () => {
      const after = await fleet.admin<Accounts>("/admin/accounts");
      expect(after).toMatchObject({ offered: before.offered + 1, cancelled: before.cancelled + 1, unfinished: 0 });
    }, 10_000);
    const { workers } = await fleet.admin<{ workers: { modelled: { inFlight: number } }[] }>("/admin/workers");
    expect(workers.map(({ modelled }) => modelled.inFlight)).toEqual([0, 0]);
  });

  test("errors have OpenAI's shape, the gateway's own and the workers'", async () => {
    const own = fleet.client.chat.completions.create({ model: MODEL, messages: [], max_tokens: 1 });
    await expect(own).rejects.toMatchObject({ status: 400, code: "invalid_request", param: "messages" });
    const theirs = fleet.client.completions.create({ model: "no-such-model", prompt: "x", max_tokens: 1 });
    const error: unknown = await theirs.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(APIError);
    expect((error as APIError).status).toBe(404);
  });

  test("models, health, readiness and metrics can be asked for", async () => {
    expect((await fleet.client.models.list()).data.map(({ id }) => id)).toEqual([MODEL]);
    const [health, ready, metrics] = await Promise.all(
      ["/health", "/ready", "/metrics"].map((path) => fetch(fleet.gateway.url + path)),
    );
    expect([health.status, ready.status, metrics.status]).toEqual([200, 200, 200]);
    expect(await ready.json()).toMatchObject({ workers: { ready: 2, total: 2 } });
    const text = await metrics.text();
    expect(text).toContain('warmpath_time_to_first_token_seconds_bucket{le="600",policy="warmpath"}');
    const lags = Number(/^warmpath_event_lag_seconds_count\{policy="warmpath"\} (\d+)$/m.exec(text)?.[1] ?? 0);
    expect(lags).toBeGreaterThan(0);
  });

  test("plain curl gets a stream, headers and errors", async () => {
    const url = `${fleet.gateway.url}/v1/chat/completions`;
    const body = JSON.stringify({
      model: MODEL,
      stream: true,
      max_tokens: 3,
      messages: [{ role: "user", content: "hi" }],
    });
    const { stdout } = await run("curl", ["-sSiN", url, "-H", "content-type: application/json", "-d", body]);
    expect(stdout).toMatch(/^HTTP\/1\.1 200/);
    expect(stdout).toMatch(/x-warmpath-worker: [ab]\r/);
    expect(stdout).toMatch(/x-warmpath-decision: \d+\r/);
    expect(stdout.match(/"content":"[^"]/g)).toHaveLength(3);
    expect(stdout.trimEnd().endsWith("data: [DONE]")).toBe(true);
    const refused = await run("curl", ["-sS", "-w", " %{http_code}", url, "-d", "{not json"]);
    expect(refused.stdout).toMatch(/"code":"invalid_json".* 400$/);
  });
});

describe.each([
  ["its own", ["--tokenizer", dirname(qwenFile("tokenizer.json"))]],
  ["the workers'", []],
])("a gateway in front of workers with a model's own tokens, which are %s", (_, gatewayFlags) => {
  let fleet: ProgramFleet;

  beforeAll(async () => {
    const workerFlags = ["--tokenizer", dirname(qwenFile("tokenizer.json"))];
    fleet = await ProgramFleet.start({ events: "http", workerFlags, gatewayFlags });
  });
  afterAll(() => fleet.close());

  test("follows a conversation all the same", async () => {
    const { workers, cached } = await conversation(fleet, "model");
    expect(workers).toBe(1);
    expect(cached[3]).toBeGreaterThan(300);
  });
});
