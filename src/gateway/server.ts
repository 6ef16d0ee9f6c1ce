import { once } from "node:events";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "undici";
import type { Clock } from "../core/clock.ts";
import { fullBlocks, sequenceHashes } from "../core/hash.ts";
import type { ReplicaSpec } from "../core/replica.ts";
import type { RoutedRequest } from "../core/routed-request.ts";
import type { Router } from "../core/router.ts";
import type { EventPlane } from "../planes/event/types.ts";
import type { PromptTokenizer } from "../tokenizer/types.ts";
import { collectBody, jsonOf } from "../wire/body.ts";
import { encodeModels } from "../wire/openai-reply.ts";
import { type GenerationKind, type GenerationRequest, parseGenerationRequest } from "../wire/openai-request.ts";
import { Exchange, type Upstream } from "./exchange.ts";
import { monotonicClock } from "./monotonic-clock.ts";
import { respondJson, respondWithError } from "./openai-errors.ts";
import { RouterDriver } from "./router-driver.ts";

/** A worker to route to. */
export interface GatewayWorker {
  readonly url: string;
  readonly replica: ReplicaSpec;
}

export interface GatewayOptions {
  readonly router: Router;
  /** Tokens in a KV block, as the router was told. */
  readonly blockTokens: number;
  readonly tokenizer: PromptTokenizer;
  readonly models: readonly string[];
  readonly workers: readonly GatewayWorker[];
  readonly events?: EventPlane;
  readonly clock?: Clock;
  readonly maxBodyBytes?: number;
  /** How often the router is told that time has passed. */
  readonly tickMs?: number;
}

const DEFAULT_MAX_BODY_BYTES = 32 * 1024 * 1024;
const DEFAULT_GRACE_MS = 30_000;

const ENDPOINTS: Readonly<Record<string, GenerationKind>> = {
  "/v1/chat/completions": "chat",
  "/v1/completions": "completion",
};

/** The headers of a client that concern the worker too. */
const PASSED_ON: readonly string[] = ["content-type", "authorization", "accept", "traceparent", "x-request-id"];

/**
 * An OpenAI-compatible server that sends each request where the router says and passes the answer on byte by byte.
 *
 * @example
 * const gateway = new Gateway({ router, blockTokens: 16, tokenizer, models: ["demo"], workers: [{ url, replica: { worker: "a" } }] });
 * const url = await gateway.listen(8000);
 */
export class Gateway {
  readonly #options: GatewayOptions;
  readonly #server: Server;
  readonly #driver: RouterDriver;
  readonly #upstreams = new Map<number, Upstream>();
  readonly #exchanges = new Set<Exchange>();
  #requests = 0;
  #closing: Promise<void> | undefined;

  constructor(options: GatewayOptions) {
    this.#options = options;
    const { router, clock = monotonicClock(), events, tickMs } = options;
    this.#driver = new RouterDriver({ router, clock, events, ...(tickMs !== undefined && { tickMs }) });
    for (const { url, replica: spec } of options.workers) {
      const replica = this.#driver.addReplica(spec);
      this.#upstreams.set(replica, { name: router.fleet.name(replica), dispatcher: new Pool(new URL(url).origin) });
    }
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
  }

  /** Starts to serve and returns the address; port 0 takes any free one. */
  async listen(port = 0, host = "127.0.0.1"): Promise<string> {
    this.#server.listen(port, host);
    await once(this.#server, "listening");
    return `http://${host}:${(this.#server.address() as AddressInfo).port}`;
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
    await this.#driver.close();
    await Promise.all([...this.#upstreams.values()].map(({ dispatcher }) => dispatcher.destroy()));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url?.split("?", 1)[0] ?? "";
    const kind = request.method === "POST" ? ENDPOINTS[path] : undefined;
    if (kind !== undefined) await this.#generate(kind, path, request, response);
    else if (request.method === "GET" && path === "/health")
      respondJson(response, 200, JSON.stringify({ status: "ok" }));
    else if (request.method === "GET" && path === "/v1/models") {
      respondJson(response, 200, encodeModels(this.#options.models));
    } else respondWithError(response, "not_found", `nothing is served at ${request.method} ${path}`);
  }

  async #generate(
    kind: GenerationKind,
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const maxBytes = this.#options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES;
    const { bytes } = await collectBody(request.iterator({ destroyOnReturn: false }), maxBytes);
    if (bytes === undefined) {
      response.setHeader("connection", "close");
      respondWithError(response, "body_too_large", `the body has more than ${maxBytes} bytes`);
      return;
    }
    const body = jsonOf(bytes);
    if (body === undefined) {
      respondWithError(response, "invalid_json", "the body is not JSON");
      return;
    }
    const { request: wanted, problem } = parseGenerationRequest(kind, body);
    if (problem !== undefined) respondWithError(response, "invalid_request", problem.message, problem.param);
    else if (this.#closing !== undefined) respondWithError(response, "shutting_down", "the gateway is shutting down");
    // A client that left while its body was read has not asked for anything yet.
    else if (!response.destroyed) {
      const outgoing = { path, headers: passedOn(request), body: bytes };
      const exchange = new Exchange(this.#driver, this.#upstreams, response, this.#routed(wanted, request), outgoing);
      this.#exchanges.add(exchange);
      response.on("close", () => {
        this.#exchanges.delete(exchange);
        // A client that keeps its connection open must not keep the gateway from closing.
        if (this.#closing !== undefined) this.#server.closeIdleConnections();
      });
    }
  }

  #routed(wanted: GenerationRequest, request: IncomingMessage): RoutedRequest {
    const { blockTokens, tokenizer } = this.#options;
    const tokens = tokenizer.encode(wanted.prompt);
    const session = request.headers["x-warmpath-session"];
    return {
      id: `request-${++this.#requests}`,
      promptTokens: tokens.length,
      sequence: sequenceHashes(
        tokens,
        blockTokens,
        wanted.cacheSalt === undefined ? {} : { cacheSalt: wanted.cacheSalt },
      ),
      blocks: fullBlocks(tokens.length, blockTokens),
      ...(wanted.maxOutputTokens !== undefined && { maxOutputTokens: wanted.maxOutputTokens }),
      ...(typeof session === "string" && { session }),
    };
  }
}

function passedOn(request: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of PASSED_ON) {
    const value = request.headers[name];
    if (typeof value === "string") headers[name] = value;
  }
  return headers;
}
