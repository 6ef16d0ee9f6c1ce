import { once } from "node:events";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { RequestPlane } from "../planes/request/types.ts";
import type { PromptTokens } from "../planes/tokens/types.ts";
import { encodeModels } from "../wire/openai-reply.ts";
import type { GenerationKind } from "../wire/openai-request.ts";
import type { Decider } from "./decider.ts";
import { Exchange, type ExchangeContext } from "./exchange.ts";
import { Generation } from "./generation.ts";
import { DEFAULT_LIMITS, type GatewayLimits } from "./limits.ts";
import { type GatewayErrorCode, respondJson, respondWithError, setRetryAfter } from "./openai-errors.ts";
import { Upstreams } from "./upstreams.ts";

export interface GatewayOptions {
  readonly decider: Decider;
  readonly tokens: Pick<PromptTokens, "tokensOf">;
  /** Tokens in a KV block, as the router was told. */
  readonly blockTokens: number;
  /** How requests reach workers; over HTTP unless told. */
  readonly requests?: RequestPlane | undefined;
  readonly limits?: Partial<GatewayLimits>;
  /** Asks engines for the usage of streams, and keeps it from clients that did not. */
  readonly asksUsage?: boolean;
  /** Put in front of request numbers, where several proxies share a decider. */
  readonly idPrefix?: string;
}

const DEFAULT_GRACE_MS = 30_000;
const DEADLINE_CHECK_MS = 250;
/** When to come again after the gateway had no room: streams end all the time. */
const ROOM_AGAIN_MS = 1000;

const ENDPOINTS: Readonly<Record<string, GenerationKind>> = {
  "/v1/chat/completions": "chat",
  "/v1/completions": "completion",
};

/**
 * An OpenAI-compatible server that sends each request where the decider says and passes the answer on event by event.
 *
 * @example
 * const decider = new LocalDecider({ router });
 * decider.fleet.appeared({ name: "a", url: "http://127.0.0.1:9001" });
 * const gateway = new Gateway({ decider, tokens, blockTokens: 16 });
 * const url = await gateway.listen(8000);
 */
export class Gateway {
  readonly #options: GatewayOptions;
  readonly #limits: GatewayLimits;
  readonly #server: Server;
  readonly #generation: Generation;
  readonly #context: ExchangeContext;
  readonly #exchanges = new Set<Exchange>();
  readonly #deadlines: NodeJS.Timeout;
  /** Requests whose body is being read or tokenized. */
  #arriving = 0;
  #closing: Promise<void> | undefined;

  constructor(options: GatewayOptions) {
    this.#options = options;
    const limits: GatewayLimits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#limits = limits;
    const { tokens, blockTokens, asksUsage = true, idPrefix = "request-", decider } = options;
    this.#generation = new Generation({
      tokens,
      blockTokens,
      maxBodyBytes: limits.maxBodyBytes,
      asksUsage,
      idPrefix,
    });
    this.#context = { decider, upstreams: options.requests ?? new Upstreams(limits), limits };
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) => fail(response, error));
    });
    this.#deadlines = setInterval(() => this.#checkDeadlines(), DEADLINE_CHECK_MS);
    this.#deadlines.unref();
  }

  /** Requests under way. */
  get open(): number {
    return this.#exchanges.size + this.#arriving;
  }

  /** Starts to serve and returns the address; port 0 takes any free one. */
  async listen(port = 0, host = "127.0.0.1"): Promise<string> {
    this.#server.listen(port, host);
    await once(this.#server, "listening");
    const shown = host.includes(":") ? `[${host}]` : host;
    return `http://${shown}:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Turns new requests away, lets those under way finish for so long, and then fails what is left. */
  close(graceMs: number = DEFAULT_GRACE_MS): Promise<void> {
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close(0);
  }

  async #close(graceMs: number): Promise<void> {
    if (this.#server.listening) {
      const closed = once(this.#server, "close");
      this.#server.close();
      const giveUp = setTimeout(() => {
        for (const exchange of this.#exchanges) exchange.abandon();
        this.#server.closeAllConnections();
      }, graceMs);
      await closed;
      clearTimeout(giveUp);
    }
    clearInterval(this.#deadlines);
    await this.#context.upstreams.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url?.split("?", 1)[0] ?? "";
    const kind = ENDPOINTS[path];
    if (kind !== undefined) {
      if (request.method === "POST") await this.#generate(kind, path, request, response);
      else this.#refuse(response, "method_not_allowed", `${path} takes POST`);
      return;
    }
    const { decider } = this.#options;
    if (request.method !== "GET" && request.method !== "HEAD") this.#refuseUnknown(request, response, path);
    else if (path === "/health") respondJson(response, 200, JSON.stringify({ status: "ok" }));
    else if (path === "/ready") this.#answerReady(response);
    else if (path === "/v1/models") respondJson(response, 200, encodeModels(decider.models()));
    else if (path === "/metrics") {
      const text = await decider.metricsText();
      response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }).end(text);
    } else this.#refuseUnknown(request, response, path);
  }

  #answerReady(response: ServerResponse): void {
    const readiness = this.#options.decider.readiness();
    const isReady = readiness.workers.ready > 0 && this.#closing === undefined;
    const status = isReady ? "ready" : this.#closing === undefined ? "no worker is ready" : "shutting down";
    respondJson(response, isReady ? 200 : 503, JSON.stringify({ status, ...readiness }));
  }

  async #generate(
    kind: GenerationKind,
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { maxStreams } = this.#limits;
    if (this.open >= maxStreams) {
      this.#options.decider.refused("max-streams");
      setRetryAfter(response, ROOM_AGAIN_MS);
      response.setHeader("connection", "close");
      respondWithError(
        response,
        "too_many_streams",
        `${this.open} requests are under way; maxStreams is ${maxStreams}`,
      );
      return;
    }
    this.#arriving++;
    let preparation;
    try {
      preparation = await this.#generation.prepare(kind, path, request, response);
    } finally {
      this.#arriving--;
    }
    const { prepared, refusal } = preparation;
    if (prepared === undefined) {
      if (refusal !== "gone") this.#options.decider.invalid(refusal);
      return;
    }
    if (this.#closing !== undefined) respondWithError(response, "shutting_down", "the gateway is shutting down");
    // A client that left while its body was read has not asked for anything yet.
    else if (!response.destroyed) this.#exchange(new Exchange(this.#context, response, prepared), response);
  }

  #exchange(exchange: Exchange, response: ServerResponse): void {
    this.#exchanges.add(exchange);
    response.on("close", () => {
      this.#exchanges.delete(exchange);
      // A client that keeps its connection open must not keep the gateway from closing.
      if (this.#closing !== undefined) this.#server.closeIdleConnections();
    });
  }

  #checkDeadlines(): void {
    const nowMs = performance.now();
    for (const exchange of this.#exchanges) exchange.checkDeadlines(nowMs);
    this.#context.upstreams.prune(nowMs);
  }

  #refuseUnknown(request: IncomingMessage, response: ServerResponse, path: string): void {
    this.#refuse(response, "not_found", `nothing is served at ${request.method} ${path}`);
  }

  #refuse(response: ServerResponse, code: GatewayErrorCode, message: string): void {
    this.#options.decider.invalid(code);
    respondWithError(response, code, message);
  }
}

/** A mistake of ours must not look like the client's, nor leave it waiting. */
function fail(response: ServerResponse, error: unknown): void {
  if (response.headersSent) response.destroy(error as Error);
  else respondWithError(response, "internal_error", error instanceof Error ? error.message : String(error));
}
