import { type Dispatcher, Pool } from "undici";
import type { WorkloadRequest } from "../workload/request.ts";
import { authorization, endpointOf } from "./endpoint.ts";
import type { LoadTarget, WrittenPrompt } from "./types.ts";

const CONNECT_MS = 10_000;
/** Longer than a user thinks, so that a turn does not pay for a connection that the one before had. */
const KEEP_ALIVE_MS = 60_000;

const PATHS: Readonly<Record<WrittenPrompt["kind"], string>> = {
  chat: "/v1/chat/completions",
  completion: "/v1/completions",
};

/** Sends requests to an endpoint over kept-alive connections, as many as are needed. */
export class CompletionClient {
  readonly #pool: Pool;
  readonly #basePath: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #opening: string;
  readonly #closing: string;
  readonly #seedsAnswers: boolean;

  constructor(target: LoadTarget) {
    const { origin, basePath } = endpointOf(target.url);
    // No bound on connections, which would hold requests back unseen, and no deadlines of undici's, which are coarse.
    this.#pool = new Pool(origin, {
      connections: null,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      allowH2: false,
      connect: { timeout: CONNECT_MS },
    });
    this.#basePath = basePath;
    this.#headers = {
      "content-type": "application/json",
      // Compression would hold chunks back.
      "accept-encoding": "identity",
      ...authorization(target.apiKey),
      ...target.headers,
    };
    this.#seedsAnswers = target.seedsAnswers === true;
    const extra = JSON.stringify(target.extraBody ?? {}).slice(1, -1);
    this.#opening = `{"model":${JSON.stringify(target.model)}`;
    this.#closing = `,"stream":true,"stream_options":{"include_usage":true}${extra === "" ? "" : `,${extra}`}}`;
  }

  send(request: WorkloadRequest, prompt: WrittenPrompt, handler: Dispatcher.DispatchHandler): void {
    const field = prompt.kind === "chat" ? "messages" : "prompt";
    const seed = this.#seedsAnswers ? `,"seed":${request.id}` : "";
    const limit = `"max_tokens":${request.outputTokens}${seed}`;
    const body = `${this.#opening},"${field}":${prompt.json},${limit}${this.#closing}`;
    const headers = { ...this.#headers, "x-warmpath-session": request.sessionName };
    this.#pool.dispatch({ method: "POST", path: this.#basePath + PATHS[prompt.kind], headers, body }, handler);
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}
