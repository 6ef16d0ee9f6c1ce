import { request } from "undici";

const TIMEOUT_MS = 5000;

/** The body of an address that answers with 2xx; rejects with one line otherwise. */
export async function httpText(
  url: string,
  options: {
    readonly method?: "GET" | "POST" | "PUT";
    readonly body?: unknown;
    readonly headers?: Readonly<Record<string, string>>;
  } = {},
): Promise<string> {
  const { method = "GET", body, headers = {} } = options;
  const response = await request(url, {
    method,
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
    headers: { ...headers, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.body.text();
  if (response.statusCode >= 200 && response.statusCode < 300) return text;
  throw new Error(`${method} ${url} answered with ${response.statusCode}: ${text.slice(0, 200)}`);
}

/** The same, parsed. */
export async function httpJson(url: string, options: Parameters<typeof httpText>[1] = {}): Promise<unknown> {
  return JSON.parse(await httpText(url, options)) as unknown;
}
