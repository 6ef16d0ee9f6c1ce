import { once } from "node:events";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Clock } from "../core/clock.ts";
import type { HttpMount } from "../planes/http-mount/types.ts";
import type { PromptTokenizer } from "../tokenizer/types.ts";
import { splitTarget } from "../wire/request-target.ts";
import type { Engine } from "./engine.ts";
import type { FaultSwitches } from "./faults.ts";
import { Generation } from "./generation.ts";
import { refuse, type RouteHandler, type Routes } from "./http-reply.ts";
import { infoRoutes } from "./info-routes.ts";
import type { GenerationMeter } from "./metrics/generation-meter.ts";
import { WallTimers } from "./timers.ts";

export interface SimulatedWorkerOptions {
  readonly name: string;
  readonly model: string;
  /** Other names that requests may call the model by. */
  readonly modelAliases?: readonly string[];
  readonly engine: Engine;
  readonly tokenizer: PromptTokenizer;
  /** The clock that requests are timed by. */
  readonly clock?: Clock;
  /** Length of an answer to a request that sets no limit; one that does is answered up to it. */
  readonly answerTokens?: number;
  readonly maxSequenceTokens?: number;
  /** Requests in the batch and waiting for it at most; any number unless told. */
  readonly maxRequests?: number;
  readonly maxBodyBytes?: number;
  readonly faults?: FaultSwitches;
  readonly meter?: GenerationMeter;
  /** What is served beside the API: metrics, debugging. */
  readonly routes?: Routes;
  /** Asked before anything else. */
  readonly mounts?: readonly HttpMount[];
}

const DEFAULT_MAX_BODY_BYTES = 64 * 1024 * 1024;
const KEEP_ALIVE_MS = 120_000;
const DEFAULT_ANSWER_TOKENS = 64;
const DEFAULT_MAX_SEQUENCE_TOKENS = 131_072;

/** An OpenAI-compatible server in front of a simulated engine. */
export class SimulatedWorker {
  readonly #options: SimulatedWorkerOptions;
  readonly #server: Server;
  readonly #generation: Generation;
  readonly #routes: Routes;

  constructor(options: SimulatedWorkerOptions) {
    this.#options = options;
    const models = [options.model, ...(options.modelAliases ?? [])];
    const maxSequenceTokens = options.maxSequenceTokens ?? DEFAULT_MAX_SEQUENCE_TOKENS;
    const maxBodyBytes = options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES;
    const generation = new Generation({
      name: options.name,
      models,
      engine: options.engine,
      tokenizer: options.tokenizer,
      clock: options.clock ?? new WallTimers(),
      answerTokens: options.answerTokens ?? DEFAULT_ANSWER_TOKENS,
      maxSequenceTokens,
      maxRequests: options.maxRequests ?? Number.POSITIVE_INFINITY,
      maxBodyBytes,
      faults: options.faults,
      meter: options.meter,
    });
    this.#generation = generation;
    const { tokenizer } = options;
    this.#routes = {
      ...options.routes,
      ...infoRoutes({ models, tokenizer, maxSequenceTokens, maxBodyBytes, isDraining: () => generation.isDraining }),
      "POST /v1/chat/completions": (request, response) => generation.serve("chat", request, response),
      "POST /v1/completions": (request, response) => generation.serve("completion", request, response),
    };
    // Longer than routers keep idle connections, so that none is closed under a request.
    this.#server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) =>
      this.#answer(request, response),
    );
  }

  /** Starts to serve and returns the address; port 0 takes any free one. */
  async listen(port = 0, host = "127.0.0.1"): Promise<string> {
    this.#server.listen(port, host);
    await once(this.#server, "listening");
    const shown = host.includes(":") ? `[${host}]` : host;
    return `http://${shown}:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Refuses new requests and says so to health checks; resolves once those under way have their answers. */
  drain(): Promise<void> {
    return this.#generation.drain();
  }

  /** Gives up waiting for answers under way: each ends with an error that names the reason. */
  abandon(reason: string): void {
    this.#generation.abandon(reason);
  }

  /** Takes no new connection and waits for the replies under way. */
  async close(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeIdleConnections();
    await closed;
  }

  /** Ends at once, as a crash would: connections are cut wherever they are. */
  async kill(): Promise<void> {
    const closed = this.close();
    this.#server.closeAllConnections();
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server.listening ? this.kill() : Promise.resolve();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { faults, mounts = [] } = this.#options;
    const [path, query] = splitTarget(request.url);
    const isDebugging = path.startsWith("/debug/");
    // Whoever hangs must still hear the order to stop.
    if (faults?.current.hang === "all" && !isDebugging) return;
    if (this.#generation.isDraining) response.setHeader("connection", "close");
    for (const mount of mounts) if (mount.handle(request, response)) return;
    const handler: RouteHandler | undefined = this.#routes[`${request.method} ${path}`];
    if (handler === undefined) {
      refuse(response, "not_found", `nothing is served at ${request.method} ${path}`);
      return;
    }
    this.#serve(handler, request, response, query);
  }

  #serve(handler: RouteHandler, request: IncomingMessage, response: ServerResponse, query: URLSearchParams): void {
    // A client that leaves in the middle of its request is not an error of ours; the connection is gone in any case.
    Promise.resolve(handler(request, response, query)).catch(() => response.destroy());
  }
}
