/** An OpenAI-compatible endpoint that does what a test tells it, request by request. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface ScriptedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>>;
  readonly response: ServerResponse;
}

export interface ScriptedEndpoint {
  readonly url: string;
  /** In the order in which they came. */
  readonly requests: readonly ScriptedRequest[];
  /** Resolves when so many requests have come. */
  readonly came: (count: number) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Starts an endpoint that has `answer` called for every request. */
export async function startScriptedEndpoint(
  answer: (request: ScriptedRequest, at: number) => void,
): Promise<ScriptedEndpoint> {
  const requests: ScriptedRequest[] = [];
  const waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  const server = createServer((request, response) => {
    if (request.url === "/v1/models") {
      response.end('{"object":"list","data":[{"id":"scripted","object":"model"}]}');
      return;
    }
    void take(request, response);
  });
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = JSON.parse(await text(request)) as ScriptedRequest["body"];
    const scripted = { path: request.url ?? "", headers: request.headers, body, response };
    requests.push(scripted);
    answer(scripted, requests.length - 1);
    for (const { count, resolve } of waiting) if (requests.length >= count) resolve();
  };
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    came: (count) =>
      new Promise((resolve) => {
        if (requests.length >= count) resolve();
        else waiting.push({ count, resolve });
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** One event with a piece of a chat's answer. */
export function piece(content: string): string {
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
}

/** The event that tells what a request cost. */
export function usage(promptTokens: number, outputTokens: number, cachedTokens?: number): string {
  const details = cachedTokens === undefined ? {} : { prompt_tokens_details: { cached_tokens: cachedTokens } };
  const told = { prompt_tokens: promptTokens, completion_tokens: outputTokens, ...details };
  return `data: ${JSON.stringify({ choices: [], usage: told })}\n\n`;
}

/** Begins a stream, as a gateway would that names its worker. */
export function openStream(response: ServerResponse, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(200, { "content-type": "text/event-stream", ...headers });
}

/** A whole answer of these pieces, at once. */
export function streamWhole(response: ServerResponse, pieces: readonly string[]): void {
  openStream(response, { "x-warmpath-worker": "w1", "x-warmpath-decision": "7" });
  response.end(`${pieces.map(piece).join("")}${usage(100, pieces.length, 60)}data: [DONE]\n\n`);
}
