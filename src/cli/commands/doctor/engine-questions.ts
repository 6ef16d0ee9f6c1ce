import { request } from "undici";
import { askForDescription } from "../../../planes/discovery/parts/self-description.ts";
import { jsonOf } from "../../../wire/body.ts";
import { field, usageOf } from "../../../wire/openai-usage.ts";
import { engineLoadOf, parseSamples } from "../../../wire/prometheus-text.ts";
import { bearer } from "../../secrets.ts";

/** What an engine says of itself without computing anything. */
export interface EngineFacts {
  readonly isReachable: boolean;
  readonly isHealthy: boolean;
  readonly models: readonly string[] | undefined;
  readonly blockTokens: number | undefined;
  readonly kvBlocks: number | undefined;
  readonly batchSlots: number | undefined;
  readonly tokens: readonly number[] | undefined;
  readonly clockAheadMs: number | undefined;
}

interface Answer {
  readonly status: number;
  readonly bytes: Uint8Array;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

const ANSWER_MS = 60_000;
const QUICK_MS = 3000;
const BLOCK_SIZE_METRICS: ReadonlySet<string> = new Set(["vllm:cache_config_info", "sglang:page_size"]);

/** Asks an engine all that it can tell; what it does not answer is undefined. */
export async function askEngine(url: string, text: string, key: string | undefined): Promise<EngineFacts> {
  const health = await get(`${url}/health`);
  const models = await get(`${url}/v1/models`, key);
  const metrics = await get(`${url}/metrics`);
  const introduction = await askForDescription(url);
  const described = introduction.kind === "described" ? introduction.description.worker : undefined;
  const metricsText = metrics?.status === 200 ? new TextDecoder().decode(metrics.bytes) : "";
  const load = engineLoadOf(metricsText);
  return {
    isReachable: health !== undefined || models !== undefined,
    isHealthy: health?.status === 200,
    models: models?.status === 200 ? modelsIn(models.bytes) : undefined,
    blockTokens: described?.blockTokens ?? blockSizeIn(metricsText),
    kvBlocks: described?.kvBlocks ?? load?.kvBlocks,
    batchSlots: described?.batchSlots ?? load?.batchSlots,
    tokens: await tokensOf(url, text, modelsIn(models?.bytes ?? new Uint8Array())?.[0], key),
    clockAheadMs: clockOf(models ?? health),
  };
}

/** A short chat, answered whole. */
export async function chat(
  url: string,
  model: string,
  content: string,
  key: string | undefined,
): Promise<{ status: number; headers: Answer["headers"]; cachedTokens: number | undefined } | undefined> {
  const messages = [{ role: "user", content }];
  const answer = await post(`${url}/v1/chat/completions`, { model, messages, max_tokens: 1 }, key);
  if (answer === undefined) return undefined;
  return {
    status: answer.status,
    headers: answer.headers,
    cachedTokens: usageOf(jsonOf(answer.bytes))?.cachedTokens,
  };
}

/** The JSON at an address; undefined if there is none. */
export async function getJson(url: string, token?: string): Promise<unknown> {
  const answer = await get(url, token);
  return answer?.status === 200 ? jsonOf(answer.bytes) : undefined;
}

async function tokensOf(
  url: string,
  text: string,
  model: string | undefined,
  key: string | undefined,
): Promise<number[] | undefined> {
  const answer = await post(`${url}/tokenize`, { prompt: text, text, ...(model !== undefined && { model }) }, key);
  const tokens = answer?.status === 200 ? field(jsonOf(answer.bytes), "tokens") : undefined;
  return Array.isArray(tokens) && tokens.every((token) => typeof token === "number") ? tokens : undefined;
}

function modelsIn(bytes: Uint8Array): string[] | undefined {
  const data = field(jsonOf(bytes), "data");
  if (!Array.isArray(data)) return undefined;
  return data.flatMap((model) => (typeof field(model, "id") === "string" ? [field(model, "id") as string] : []));
}

function blockSizeIn(metrics: string): number | undefined {
  for (const { name, labels, value } of parseSamples(metrics, BLOCK_SIZE_METRICS)) {
    const size = name === "sglang:page_size" ? value : Number(labels["block_size"]);
    if (Number.isSafeInteger(size) && size > 0) return size;
  }
  return undefined;
}

function clockOf(answer: Answer | undefined): number | undefined {
  const date = answer?.headers["date"];
  const told = typeof date === "string" ? Date.parse(date) : Number.NaN;
  return Number.isNaN(told) ? undefined : told - Date.now();
}

function get(url: string, secret?: string): Promise<Answer | undefined> {
  return ask(url, { method: "GET", headers: bearer(secret) }, QUICK_MS);
}

function post(url: string, body: object, secret?: string): Promise<Answer | undefined> {
  const headers = { "content-type": "application/json", ...bearer(secret) };
  return ask(url, { method: "POST", headers, body: JSON.stringify(body) }, ANSWER_MS);
}

async function ask(
  url: string,
  options: { method: "GET" | "POST"; headers?: Record<string, string>; body?: string },
  withinMs: number,
): Promise<Answer | undefined> {
  try {
    const { statusCode, headers, body } = await request(url, { ...options, signal: AbortSignal.timeout(withinMs) });
    return { status: statusCode, headers, bytes: new Uint8Array(await body.arrayBuffer()) };
  } catch {
    return undefined;
  }
}
