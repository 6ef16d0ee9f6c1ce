import { request } from "undici";
import { WarmpathError } from "../core/errors.ts";
import { authorization, endpointOf } from "./endpoint.ts";

const TIMEOUT_MS = 10_000;

/** The first model that an endpoint serves; throws with one line if it does not answer or has none. */
export async function firstModel(url: string, apiKey?: string): Promise<string> {
  const { origin, basePath } = endpointOf(url);
  const address = `${origin}${basePath}/v1/models`;
  let list: unknown;
  try {
    const { statusCode, body } = await request(address, {
      headers: authorization(apiKey),
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
    });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`answered with ${statusCode}`);
    list = JSON.parse(text);
  } catch (cause) {
    const reason = cause instanceof Error ? reasonOf(cause) : String(cause);
    throw new WarmpathError("WP_INVALID_INPUT", `${address} cannot be asked for its models: ${reason}`, { cause });
  }
  const models = (list as { readonly data?: readonly { readonly id?: unknown }[] } | null)?.data;
  const id = Array.isArray(models) ? (models as readonly { readonly id?: unknown }[])[0]?.id : undefined;
  if (typeof id === "string") return id;
  throw new WarmpathError("WP_INVALID_INPUT", `${address} names no model; name one with --model`);
}

function reasonOf(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  return error.message !== "" ? error.message : (code ?? error.name);
}
