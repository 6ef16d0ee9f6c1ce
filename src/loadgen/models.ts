import { request } from "undici";
import { WarmpathError } from "../core/errors.ts";
import { authorization, endpointOf } from "./endpoint.ts";

const TIMEOUT_MS = 10_000;

/** What came of asking an endpoint for its models. */
export type ModelsAnswer =
  | { readonly model: string; readonly problem?: undefined }
  | {
      readonly model?: undefined;
      /** In one line, with the address. */
      readonly problem: string;
      /** Undefined where nobody answered. */
      readonly status: number | undefined;
      readonly cause?: unknown;
    };

/** The first model that an endpoint serves; throws with one line if it does not answer or has none. */
export async function firstModel(url: string, apiKey?: string): Promise<string> {
  const answer = await askForModel(url, apiKey);
  if (answer.model !== undefined) return answer.model;
  throw new WarmpathError("WP_INVALID_INPUT", answer.problem, { cause: answer.cause });
}

/** The same, for whoever asks again: why there is none is a value. */
export async function askForModel(url: string, apiKey?: string): Promise<ModelsAnswer> {
  const { origin, basePath } = endpointOf(url);
  const address = `${origin}${basePath}/v1/models`;
  let status: number | undefined;
  let list: unknown;
  try {
    const { statusCode, body } = await request(address, {
      headers: authorization(apiKey),
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
    });
    status = statusCode;
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`answered with ${statusCode}`);
    list = JSON.parse(text);
  } catch (cause) {
    const reason = cause instanceof Error ? reasonOf(cause) : String(cause);
    return { problem: `${address} cannot be asked for its models: ${reason}`, status, cause };
  }
  const models = (list as { readonly data?: readonly { readonly id?: unknown }[] } | null)?.data;
  const id = Array.isArray(models) ? (models as readonly { readonly id?: unknown }[])[0]?.id : undefined;
  if (typeof id === "string") return { model: id };
  return { problem: `${address} names no model; name one with --model`, status };
}

function reasonOf(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  return error.message !== "" ? error.message : (code ?? error.name);
}
