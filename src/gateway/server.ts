import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { type AddressInfo, Server as NetServer } from "node:net";
import type { RequestPlane } from "../planes/request/types.ts";
import type { PromptTokens } from "../planes/tokens/types.ts";
import { encodeModel, encodeModels } from "../wire/openai-reply.ts";
import type { GenerationKind } from "../wire/openai-request.ts";
import { pathIn } from "../wire/request-target.ts";
import { KeyPauses } from "./access/key-pauses.ts";
import type { KeyRing } from "./access/key-ring.ts";
import type { Decider } from "./decider.ts";
import { Exchange, type ExchangeContext } from "./exchange.ts";
import { Generation } from "./generation.ts";
import { DEFAULT_LIMITS, type GatewayLimits } from "./limits.ts";
import { closeAfter } from "./lingering-close.ts";
import { type TlsIdentity, createListener, renewIdentity } from "./listener.ts";
import {
  type GatewayErrorCode,
  respondJson,
  respondWithAllowed,
  respondWithError,
  respondWithShed,
  setRetryAfter,
} from "./openai-errors.ts";
import { bringsBody } from "./request-body.ts";
import { Upstreams } from "./upstreams.ts";

export interface GatewayOptions {
  readonly decider: Decider;
  readonly tokens: Pick<PromptTokens, "tokensOf" | "areAskedFor">;
  /** Tokens in a KV block, as the router was told. */
  readonly blockTokens: number;
  /** How requests reach workers; over HTTP unless told. */
  readonly requests?: RequestPlane | undefined;
  readonly limits?: Partial<GatewayLimits>;
  /** Asks engines for the usage of streams, and keeps it from clients that did not. */
  readonly asksUsage?: boolean;
  /** Put in front of request numbers, where several proxies share a decider. */
  readonly idPrefix?: string;
  /** Continues streams whose worker is lost, where the client does not say otherwise. */
  readonly migratesStreams?: boolean;
  /** Who may ask; everybody unless told. */
  readonly keys?: KeyRing | undefined;
  /** Keeps the caches of keys apart. */
  readonly saltsByKey?: boolean;
  /** What engines are sent as `authorization`; unless told, the client's, or nothing where that is a key of ours. */
  readonly engineAuthorization?: (() => string | undefined) | undefined;
  readonly tls?: TlsIdentity | undefined;
  /** Whether `/metrics` is served beside the API. */
  readonly servesMetrics?: boolean;
  /** Told, in words, of what went wrong by the gateway's own fault. */
  readonly problem?: (message: string) => void;
}

const DEFAULT_GRACE_MS = 30_000;
/** How long clients have to fetch the last words of a gateway that ends. */
const LAST_WORDS_MS = 1000;
const DEADLINE_CHECK_MS = 250;
/** When to come again after the gateway had no room: streams end all the time. */
const ROOM_AGAIN_MS = 1000;

const ENDPOINTS: Readonly<Record<string, GenerationKind>> = {
  "/v1/chat/completions": "chat",
  "/v1/completions": "completion",
};

const READ_PATHS: ReadonlySet<string> = new Set(["/health", "/ready", "/v1/models", "/metrics"]);
const MODEL_PATH = "/v1/models/";

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
  readonly #server: Server;
  readonly #generation: Generation;
  readonly #pauses: KeyPauses;
  readonly #exchanges = new Map<Exchange, ServerResponse>();
  /** When answers were found to be complete and yet unread. */
  readonly #unreadSinceMs = new WeakMap<ServerResponse, number>();
  readonly #deadlines: NodeJS.Timeout;
  /** Requests whose body is being read or tokenized. */
  #arriving = 0;
  #limits: GatewayLimits;
  #context: ExchangeContext;
  /** Resolves when nobody is connected any more; undefined before anybody could be. */
  #closed: Promise<void> | undefined;
  #isRetiring = false;
  /** Nothing that is under way is waited for any longer. */
  #isAbandoned = false;
  #closing: Promise<void> | undefined;

  constructor(options: GatewayOptions) {
    this.#options = options;
    const limits: GatewayLimits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#limits = limits;
    const { tokens, blockTokens, asksUsage = true, idPrefix = "request-", decider, keys, tls, saltsByKey } = options;
    this.#generation = new Generation({
      tokens,
      blockTokens,
      maxBodyBytes: limits.maxBodyBytes,
      asksUsage,
      idPrefix,
      migratesStreams: options.migratesStreams,
      saltsByKey,
      adapters: () => decider.adapters(),
      engineAuthorization: options.engineAuthorization ?? (keys === undefined ? undefined : () => undefined),
    });
    this.#pauses = new KeyPauses(decider);
    // Only keys can be paused: without them there is nothing to listen for.
    const asked = keys === undefined ? decider : this.#pauses;
    this.#context = { decider: asked, upstreams: options.requests ?? new Upstreams(limits), limits };
    this.#server = createListener({
      limits,
      tls,
      serve: (request, response) => {
        this.#serve(request, response).catch((error: unknown) => this.#fail(response, error));
      },
      rejected: (code) => decider.invalid(code),
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
    this.#closed = new Promise((resolve) => this.#server.once("close", () => resolve()));
    const shown = host.includes(":") ? `[${host}]` : host;
    const scheme = this.#options.tls === undefined ? "http" : "https";
    return `${scheme}://${shown}:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Another certificate for connections from now on. */
  renewTls(tls: TlsIdentity): void {
    renewIdentity(this.#server, tls);
  }

  /** The limits of keys have changed: whoever had to wait may ask again. */
  forgetPauses(): void {
    this.#pauses.forget();
  }

  /** Changes bounds and deadlines for requests that come from now on; how workers are connected to stays. */
  configure(limits: Partial<GatewayLimits>, asksUsage: boolean): void {
    this.#limits = { ...this.#limits, ...limits };
    this.#context = { ...this.#context, limits: this.#limits };
    this.#generation.configure({ maxBodyBytes: this.#limits.maxBodyBytes, asksUsage });
  }

  /**
   * Takes no new connections, serves what still comes on those there are, and closes each with an answer that says so. An idle
   * one is left to its client: closed from here, it might be closed upon a request that is already under way.
   */
  retire(graceMs: number = DEFAULT_GRACE_MS): Promise<void> {
    this.#isRetiring = true;
    return this.#end(graceMs, () => NetServer.prototype.close.call(this.#server));
  }

  /** Turns new requests away, lets those under way finish for so long, and then fails what is left. */
  close(graceMs: number = DEFAULT_GRACE_MS): Promise<void> {
    this.#closing ??= this.#end(graceMs, () => this.#server.close());
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close(0);
  }

  async #end(graceMs: number, stopListening: () => void): Promise<void> {
    if (this.#closed !== undefined) {
      stopListening();
      let giveUp = setTimeout(() => {
        giveUp = setTimeout(() => this.#server.closeAllConnections(), LAST_WORDS_MS);
        this.#abandonAll();
      }, graceMs);
      await this.#closed;
      clearTimeout(giveUp);
    }
    clearInterval(this.#deadlines);
    await this.#context.upstreams.close();
  }

  /** Tells everybody who waits for an answer that there will be none, and lets that reach them. */
  #abandonAll(): void {
    this.#isAbandoned = true;
    for (const exchange of this.#exchanges.keys()) exchange.abandon();
    if (this.#exchanges.size === 0) this.#server.closeAllConnections();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#isRetiring) response.shouldKeepAlive = false;
    const path = pathIn(request.url);
    const { decider, keys, servesMetrics = true } = this.#options;
    const key = path.startsWith("/v1/") ? keys?.nameIn(request.headers.authorization) : undefined;
    if (keys !== undefined && key === undefined && path.startsWith("/v1/")) {
      this.#refuseStranger(response);
      return;
    }
    const kind = ENDPOINTS[path];
    if (kind !== undefined) {
      if (request.method === "POST") await this.#generate(kind, path, request, response, key);
      else this.#refuseMethod(response, path, ["POST"]);
      return;
    }
    const isRead = path.startsWith(MODEL_PATH) || READ_PATHS.has(path);
    if (!isRead || (path === "/metrics" && !servesMetrics)) this.#refuseUnknown(request, response, path);
    else if (request.method !== "GET" && request.method !== "HEAD") this.#refuseMethod(response, path, ["GET", "HEAD"]);
    else if (path === "/health") respondJson(response, 200, JSON.stringify({ status: "ok" }));
    else if (path === "/ready") this.#answerReady(response);
    else if (path === "/v1/models") respondJson(response, 200, encodeModels(decider.models()));
    else if (path.startsWith(MODEL_PATH)) this.#answerModel(response, path.slice(MODEL_PATH.length));
    else {
      const text = await decider.metricsText();
      // A client that breaks off inside a body has been told so meanwhile.
      if (response.headersSent) return;
      response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }).end(text);
    }
  }

  /** Names of models may have slashes, which clients write as they are or encoded. */
  #answerModel(response: ServerResponse, written: string): void {
    const models = this.#options.decider.models();
    const id = [written, decoded(written)].find((name) => models.includes(name));
    if (id !== undefined) respondJson(response, 200, encodeModel(id));
    else
      this.#refuse(
        response,
        "model_not_found",
        `no worker serves the model ${JSON.stringify(decoded(written))}`,
        "model",
      );
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
    key: string | undefined,
  ): Promise<void> {
    const { maxStreams } = this.#limits;
    const pause = key === undefined ? undefined : this.#pauses.of(key, performance.now());
    if (pause !== undefined) {
      this.#options.decider.refused(pause.code, key);
      closeIfUnread(response);
      respondWithShed(response, pause);
      return;
    }
    if (this.open >= maxStreams) {
      this.#options.decider.refused("max-streams");
      setRetryAfter(response, ROOM_AGAIN_MS);
      closeAfter(response);
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
      preparation = await this.#generation.prepare(kind, path, request, response, key);
    } finally {
      this.#arriving--;
    }
    if (preparation.prepared === undefined) {
      if (preparation.refusal !== "gone") this.#options.decider.invalid(preparation.refusal);
      return;
    }
    const { prepared, hearing } = preparation;
    const isEnding = this.#closing !== undefined || this.#isAbandoned;
    if (isEnding) respondWithError(response, "shutting_down", "the gateway is shutting down");
    // A client that left while its body was read has not asked for anything yet.
    else if (!response.destroyed) this.#exchange(new Exchange(this.#context, response, prepared, hearing), response);
  }

  #exchange(exchange: Exchange, response: ServerResponse): void {
    this.#exchanges.set(exchange, response);
    response.on("close", () => {
      this.#exchanges.delete(exchange);
      // A client that keeps its connection open must not keep the gateway from closing.
      if (this.#isAbandoned && this.#exchanges.size === 0) this.#server.closeAllConnections();
      else if (this.#closing !== undefined) this.#server.closeIdleConnections();
    });
  }

  #checkDeadlines(): void {
    const nowMs = performance.now();
    for (const [exchange, response] of this.#exchanges) {
      exchange.checkDeadlines(nowMs);
      if (response.writableEnded) this.#checkUnread(response, nowMs);
    }
    this.#context.upstreams.prune(nowMs);
  }

  /** An answer that nobody fetches takes memory for as long as its connection lives. */
  #checkUnread(response: ServerResponse, nowMs: number): void {
    const sinceMs = this.#unreadSinceMs.get(response);
    if (sinceMs === undefined) this.#unreadSinceMs.set(response, nowMs);
    else if (nowMs - sinceMs > this.#limits.clientStallMs) response.destroy();
  }

  #refuseStranger(response: ServerResponse): void {
    response.setHeader("www-authenticate", "Bearer");
    this.#refuse(response, "invalid_api_key", "send a known API key as Authorization: Bearer KEY");
  }

  #refuseUnknown(request: IncomingMessage, response: ServerResponse, path: string): void {
    this.#refuse(response, "not_found", `nothing is served at ${request.method} ${path}`);
  }

  #refuseMethod(response: ServerResponse, path: string, methods: readonly string[]): void {
    this.#options.decider.invalid("method_not_allowed");
    closeIfUnread(response);
    respondWithAllowed(response, path, methods);
  }

  #refuse(response: ServerResponse, code: GatewayErrorCode, message: string, param?: string): void {
    this.#options.decider.invalid(code);
    closeIfUnread(response);
    respondWithError(response, code, message, param);
  }

  /** A mistake of ours must not look like the client's, nor leave it waiting, nor go unnoticed. */
  #fail(response: ServerResponse, error: unknown): void {
    const { message, stack = message } = error instanceof Error ? error : new Error(String(error));
    const { method, url } = response.req;
    const where = stack.split(/\n\s*/, 2).join(" ");
    this.#options.problem?.(`a mistake of the gateway's at ${method} ${pathIn(url)}: ${where}`);
    this.#options.decider.invalid("internal_error");
    if (response.headersSent) response.destroy();
    else respondWithError(response, "internal_error", message);
  }
}

/** A part of a path as it was meant, or as it is if that cannot be told. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** A body that nobody reads must not be waited for: after it the connection is of no use. */
function closeIfUnread(response: ServerResponse): void {
  if (bringsBody(response.req)) closeAfter(response);
}
