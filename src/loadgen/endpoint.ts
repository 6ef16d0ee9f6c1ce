import { WarmpathError } from "../core/errors.ts";

/** An OpenAI-compatible endpoint, taken apart. */
export interface Endpoint {
  readonly origin: string;
  /** What stands before `/v1`; empty in most cases. */
  readonly basePath: string;
}

/** Reads an address such as `http://127.0.0.1:8000` or `https://host/api/v1/`. */
export function endpointOf(url: string): Endpoint {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch (cause) {
    throw new WarmpathError("WP_INVALID_INPUT", `"${url}" is not an address; write http://HOST:PORT`, { cause });
  }
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") {
    throw new WarmpathError("WP_INVALID_INPUT", `"${url}" must begin with http:// or https://`);
  }
  return { origin: parsed.origin, basePath: parsed.pathname.replace(/\/+$/, "").replace(/\/v1$/, "") };
}

/** The header that an API key is sent in. */
export function authorization(apiKey: string | undefined): Readonly<Record<string, string>> {
  return apiKey === undefined || apiKey === "" ? {} : { authorization: `Bearer ${apiKey}` };
}
