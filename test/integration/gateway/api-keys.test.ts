/** Who may ask, for how much, and what engines get to see of it. */
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type GatewayUnderTest, startTestGateway } from "../../support/running-gateway.ts";
import { startTestWorker, words } from "../../support/running-worker.ts";
import { type RecordingEngine, startRecordingEngine } from "./recording-engine.ts";

const PATIENCE = { timeout: 10_000 };
const opened: { close(): unknown }[] = [];
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "warmpath-keys-"));
});

afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one.close();
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

function entry(name: string, allowance: object = {}): object {
  return { name, sha256: createHash("sha256").update(`wp-${name}`).digest("hex"), ...allowance };
}

async function writeKeys(...entries: object[]): Promise<string> {
  const path = join(folder, "keys.json");
  await writeFile(path, JSON.stringify(entries));
  return path;
}

async function started(
  settings: object,
  entries?: readonly object[],
): Promise<{ gateway: GatewayUnderTest; engine: RecordingEngine }> {
  const engine = await startRecordingEngine();
  opened.push(engine);
  const keys = entries === undefined ? {} : { apiKeys: await writeKeys(...entries) };
  const common = { worker: [`e=${engine.url}`], tokenizer: "word", blockTokens: 16, eventPlane: "none" };
  const gateway = await startTestGateway({ ...common, ...keys, ...settings });
  opened.push(gateway);
  return { gateway, engine };
}

function ask({ url }: { url: string }, name: string | undefined, fields: object = {}): Promise<Response> {
  const headers: Record<string, string> = name === undefined ? {} : { authorization: `Bearer wp-${name}` };
  const body = JSON.stringify({ model: "m", prompt: "hello there", ...fields });
  return fetch(`${url}/v1/completions`, { method: "POST", headers, body });
}

async function metric(gateway: GatewayUnderTest, series: string): Promise<number> {
  const line = (await gateway.decider.metricsText()).split("\n").find((one) => one.startsWith(`${series} `));
  return Number(line?.split(" ").at(-1) ?? 0);
}

const ended = (reason: string): string =>
  `warmpath_requests_ended_total{policy="warmpath",account="shed",reason="${reason}"}`;

describe("a gateway with API keys", () => {
  test("serves whoever has one and nobody else, and counts the others as invalid", async () => {
    const { gateway, engine } = await started({}, [entry("a")]);
    for (const stranger of [undefined, "b"]) {
      const response = await ask(gateway, stranger);
      expect(response.status).toBe(401);
      expect(await response.json()).toEqual({
        error: {
          message: "send a known API key as Authorization: Bearer KEY",
          type: "invalid_request_error",
          param: null,
          code: "invalid_api_key",
        },
      });
    }
    expect((await fetch(`${gateway.url}/v1/models`)).status).toBe(401);
    expect(engine.received).toEqual([]);
    expect(await metric(gateway, 'warmpath_requests_invalid_total{code="invalid_api_key"}')).toBe(3);
    expect((await ask(gateway, "a")).status).toBe(200);
    expect(await metric(gateway, 'warmpath_requests_offered_total{policy="warmpath"}')).toBe(1);
    const open = await Promise.all(["/health", "/ready", "/metrics"].map((path) => fetch(gateway.url + path)));
    expect(open.map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  test("turns strangers away before they have sent their body", async () => {
    const { gateway } = await started({}, [entry("a")]);
    const asking = request(`${gateway.url}/v1/completions`, { method: "POST", headers: { expect: "100-continue" } });
    const answered = new Promise<number | undefined>((resolve, reject) => {
      asking.on("continue", () => reject(new Error("was told to go on")));
      asking.on("response", ({ statusCode }) => resolve(statusCode));
      asking.on("error", reject);
    });
    asking.flushHeaders();
    expect(await answered).toBe(401);
    asking.destroy();
  });

  test("keeps its keys from engines, and sends them their own", async () => {
    const { gateway, engine } = await started({}, [entry("a")]);
    await ask(gateway, "a");
    expect(engine.received.map(({ headers }) => headers.authorization)).toEqual([undefined]);
    const path = join(folder, "engine-key");
    await writeFile(path, "engine-secret\n");
    const other = await started({ upstreamKeyFile: path }, [entry("a")]);
    await ask(other.gateway, "a");
    expect(other.engine.received.map(({ headers }) => headers.authorization)).toEqual(["Bearer engine-secret"]);
    expect([...other.engine.probedWith]).toContain("Bearer engine-secret");
    vi.stubEnv("WARMPATH_UPSTREAM_KEY", "from-the-environment");
    const third = await started({});
    await ask(third.gateway, "whatever");
    expect(third.engine.received.map(({ headers }) => headers.authorization)).toEqual(["Bearer from-the-environment"]);
  });

  test("has each key ask as often as it may, and accounts for each request once", async () => {
    const { gateway } = await started({}, [entry("a", { requestsPerMinute: 1 }), entry("b")]);
    expect((await ask(gateway, "a")).status).toBe(200);
    // The first is turned away by the limits, the next by what is remembered of them.
    for (let i = 0; i < 2; i++) {
      const response = await ask(gateway, "a");
      expect(response.status).toBe(429);
      expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(50);
      expect(Number(response.headers.get("retry-after-ms"))).toBeLessThanOrEqual(60_000);
      expect(await response.json()).toMatchObject({
        error: { type: "rate_limit_error", code: "key_requests", details: { knob: "requestsPerMinute", threshold: 1 } },
      });
    }
    expect((await ask(gateway, "b")).status).toBe(200);
    expect(await metric(gateway, 'warmpath_requests_offered_total{policy="warmpath"}')).toBe(4);
    expect(await metric(gateway, ended("key_requests"))).toBe(2);
    expect(await metric(gateway, 'warmpath_key_requests_total{key="a",result="admitted"}')).toBe(1);
    expect(await metric(gateway, 'warmpath_key_requests_total{key="a",result="key_requests"}')).toBe(2);
    expect(await metric(gateway, 'warmpath_key_requests_total{key="b",result="admitted"}')).toBe(1);
  });

  test("counts the tokens of prompts and answers against a key", async () => {
    const { gateway } = await started({}, [entry("a", { tokensPerMinute: 4 })]);
    expect((await ask(gateway, "a", { prompt: words(8, "w") })).status).toBe(200);
    const response = await ask(gateway, "a");
    expect([response.status, ((await response.json()) as { error: { code: string } }).error.code]).toEqual([
      429,
      "key_tokens",
    ]);
    expect(await metric(gateway, 'warmpath_key_tokens_total{key="a",kind="output"}')).toBe(1);
    expect(await metric(gateway, 'warmpath_key_tokens_total{key="a",kind="prompt"}')).toBeGreaterThanOrEqual(8);
    expect(await metric(gateway, ended("key_tokens"))).toBe(1);
  });

  test("frees a key's stream when its request ends, however it ends", async () => {
    const { gateway } = await started({}, [entry("a", { maxStreams: 1 })]);
    for (let i = 0; i < 3; i++) expect((await ask(gateway, "a")).status).toBe(200);
    const invalid = await ask(gateway, "a", { prompt: 7 });
    expect(invalid.status).toBe(400);
    expect((await ask(gateway, "a")).status).toBe(200);
  });

  test("reads its file again when it changes", async () => {
    const { gateway } = await started({}, [entry("a")]);
    expect((await ask(gateway, "b")).status).toBe(401);
    await writeKeys(entry("b"));
    await vi.waitFor(async () => expect((await ask(gateway, "b")).status).toBe(200), PATIENCE);
    expect((await ask(gateway, "a")).status).toBe(401);
    await writeFile(join(folder, "keys.json"), "not: a list");
    await vi.waitFor(async () => expect((await ask(gateway, "b")).status).toBe(200), PATIENCE);
  });

  test("shows its metrics on the admin API alone, if told so", async () => {
    const { gateway } = await started({ publicMetrics: false }, [entry("a")]);
    expect((await fetch(`${gateway.url}/metrics`)).status).toBe(404);
    expect((await fetch(`${gateway.adminUrl}/metrics`)).status).toBe(200);
  });
});

describe("salts by key", () => {
  test("are in every body, over whatever the client wrote", async () => {
    const { gateway, engine } = await started({ saltByKey: true }, [entry("a")]);
    const written: object[] = [
      {},
      { cache_salt: "mine" },
      { cache_salt: null },
      { stream: true },
      { stream: true, cache_salt: "key:b", stream_options: { include_usage: false } },
    ];
    for (const fields of written) await (await ask(gateway, "a", fields)).text();
    const salts = engine.received.map(({ body }) => body["cache_salt"]);
    expect(salts).toEqual(["key:a", "key:a:mine", "key:a", "key:a", "key:a:key:b"]);
    expect(engine.received.map(({ body }) => body["prompt"])).toEqual(written.map(() => "hello there"));
  });

  test("keep one key from finding out what another has sent", async () => {
    const worker = await startTestWorker({ name: "w" });
    opened.push({ close: () => worker.close(0) });
    const apiKeys = await writeKeys(entry("a"), entry("b"));
    const gateway = await startTestGateway({ worker: [`w=${worker.url}`], apiKeys, saltByKey: true });
    opened.push(gateway);
    const prompt = words(200, "secret");
    const { model } = worker;
    const cachedFor = async (name: string): Promise<unknown> => {
      const answer = (await (await ask(gateway, name, { model, prompt, max_tokens: 1 })).json()) as {
        usage: { prompt_tokens_details?: { cached_tokens?: number } };
      };
      return answer.usage.prompt_tokens_details?.cached_tokens;
    };
    expect(await cachedFor("a")).toBe(0);
    expect(await cachedFor("a")).toBeGreaterThan(100);
    expect(await cachedFor("b")).toBe(0);
    const [decision] = gateway.decider.router.log.latest(1);
    expect(decision.predictedCachedTokens).toBe(0);
  });
});
