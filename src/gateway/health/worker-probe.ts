import { request } from "undici";
import { jsonOf } from "../../wire/body.ts";
import { field } from "../../wire/openai-usage.ts";

/** What a worker answers when it is asked how it is. */
export interface ProbeResult {
  readonly isHealthy: boolean;
  /** What it serves; undefined if it did not say. */
  readonly models?: readonly string[];
  /** Those of them that are adapters, whose caches are their own. */
  readonly adapters?: readonly string[];
}

/** Asks a worker how it is; never throws. */
export type WorkerProbe = (url: string) => Promise<ProbeResult>;

/** Asks over HTTP: `/health` for life, `/v1/models` for what is served, with the engines' key where they ask for one. */
export function httpProbe(timeoutMs: number, engineAuthorization?: () => string | undefined): WorkerProbe {
  const get = async (url: string): Promise<{ status: number; body: Uint8Array }> => {
    const authorization = engineAuthorization?.();
    const { statusCode: status, body } = await request(url, {
      ...(authorization !== undefined && { headers: { authorization } }),
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      signal: AbortSignal.timeout(timeoutMs),
    });
    return { status, body: new Uint8Array(await body.arrayBuffer()) };
  };
  return async (url) => {
    try {
      const health = await get(`${url}/health`);
      if (health.status !== 200) return { isHealthy: false };
      const models = await get(`${url}/v1/models`);
      return models.status === 200 ? { isHealthy: true, ...modelsIn(models.body) } : { isHealthy: true };
    } catch {
      return { isHealthy: false };
    }
  };
}

function modelsIn(body: Uint8Array): Pick<ProbeResult, "models" | "adapters"> {
  const data = field(jsonOf(body), "data");
  if (!Array.isArray(data)) return {};
  return { models: data.flatMap(nameOf), adapters: data.filter(isAdapter).flatMap(nameOf) };
}

function nameOf(model: unknown): string[] {
  const id = field(model, "id");
  return typeof id === "string" ? [id] : [];
}

/** Engines list an adapter with the name of the model that it adapts. */
function isAdapter(model: unknown): boolean {
  const parent = field(model, "parent");
  return typeof parent === "string" && parent !== field(model, "id");
}
