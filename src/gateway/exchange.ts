import type { ServerResponse } from "node:http";
import { type Dispatcher, errors } from "undici";
import type { ShedReason } from "../core/admission/types.ts";
import type { Place } from "../core/effects.ts";
import { WarmpathError } from "../core/errors.ts";
import type { RoutedRequest } from "../core/routed-request.ts";
import type { Ending } from "../core/open-request.ts";
import { encodeError } from "../wire/openai-reply.ts";
import type { TokenUsage } from "../wire/openai-usage.ts";
import { sseEvent } from "../wire/sse.ts";
import { errorFields, respondWithError, respondWithShed } from "./openai-errors.ts";
import { Attempt, type AttemptListener, type UpstreamRequest, type WholeResponse } from "./proxy.ts";
import type { DrivenRequest, RouterDriver } from "./router-driver.ts";

/** A worker as requests are sent to it. */
export interface Upstream {
  readonly name: string;
  readonly dispatcher: Dispatcher;
}

/**
 * One client's request from its offer to its end: goes where the router places it, passes the answer on, and reports the
 * one end it has. As long as nothing has reached the client, a failure may be tried again elsewhere.
 */
export class Exchange implements DrivenRequest, AttemptListener {
  readonly #driver: RouterDriver;
  readonly #upstreams: ReadonlyMap<number, Upstream>;
  readonly #response: ServerResponse;
  readonly #outgoing: UpstreamRequest;
  readonly #id: string;
  #attempt: Attempt | undefined;
  #isEnded = false;
  #hasFirstToken = false;

  constructor(
    driver: RouterDriver,
    upstreams: ReadonlyMap<number, Upstream>,
    response: ServerResponse,
    request: RoutedRequest,
    outgoing: UpstreamRequest,
  ) {
    this.#driver = driver;
    this.#upstreams = upstreams;
    this.#response = response;
    this.#outgoing = outgoing;
    this.#id = request.id;
    response.on("drain", () => this.#attempt?.resume());
    response.on("close", () => this.#clientGone());
    driver.offer(request, this);
  }

  place({ replica, decision }: Place): void {
    const upstream = this.#upstreams.get(replica);
    if (upstream === undefined) throw new WarmpathError("WP_UNKNOWN_REPLICA", `replica ${replica} has no address`);
    this.#response.setHeader("x-warmpath-worker", upstream.name);
    this.#response.setHeader("x-warmpath-decision", String(decision));
    this.#attempt = new Attempt(this);
    this.#attempt.start(upstream.dispatcher, this.#outgoing);
  }

  shed(reason: ShedReason): void {
    this.#isEnded = true;
    // Where a retry was turned away, the worker that failed before is no answer to "who served this".
    this.#response.removeHeader("x-warmpath-worker");
    this.#response.removeHeader("x-warmpath-decision");
    respondWithShed(this.#response, reason);
  }

  sent(): void {
    this.#driver.sent(this.#id);
  }

  streamed(contentType: string, chunk: Uint8Array, tokens: number): boolean {
    if (!this.#response.headersSent) {
      this.#response.writeHead(200, { "content-type": contentType, "cache-control": "no-cache" });
    }
    const mayGoOn = this.#response.write(chunk);
    if (tokens > 0) this.#grew(tokens);
    return mayGoOn;
  }

  streamEnded(isWhole: boolean, usage: TokenUsage | undefined): void {
    if (isWhole) {
      this.#end({ outcome: "completed", ...observed(usage) });
      this.#response.end();
    } else if (this.#response.headersSent) {
      // Whatever went wrong is in the stream, or its end mark is missing: the client can see it there.
      this.#end({ outcome: "failed", mayRetry: false });
      this.#response.end();
    } else this.#fail("worker_failed", "the worker ended its stream before it began");
  }

  whole(response: WholeResponse): void {
    const { status, usage } = response;
    if (status < 300) {
      this.#grew(usage?.outputTokens ?? 0);
      this.#end({ outcome: "completed", ...observed(usage) });
    } else {
      // Another worker would say the same to a bad request, but may well serve what this one could not.
      const mayRetry = status === 429 || status >= 500;
      const isOver = this.#end({ outcome: status >= 500 && status !== 503 ? "failed" : "rejected", mayRetry });
      if (!isOver) return;
    }
    const headers = { "content-type": response.contentType, "content-length": response.body.length };
    this.#response.writeHead(status, headers).end(response.body);
  }

  failed(error: Error, isInsideEvent: boolean): void {
    const code = isTimeout(error) ? "worker_timed_out" : "worker_failed";
    const message = `the worker failed: ${error.message}`;
    if (!this.#response.headersSent) {
      this.#fail(code, message);
      return;
    }
    this.#end({ outcome: code === "worker_timed_out" ? "timedOut" : "failed", mayRetry: false });
    // An event that was cut cannot be mended; cutting the connection too is the only honest way to say so.
    if (isInsideEvent) this.#response.destroy();
    else this.#response.end(sseEvent(encodeError(errorFields(code, message))));
  }

  /** Ends a request that the gateway can wait for no longer. */
  abandon(): void {
    if (this.#isEnded) return;
    this.#attempt?.abort();
    if (this.#response.headersSent) {
      this.#end({ outcome: "failed", mayRetry: false });
      this.#response.destroy();
    } else if (this.#end({ outcome: "failed", mayRetry: false })) {
      respondWithError(this.#response, "shutting_down", "the gateway is shutting down");
    }
  }

  #clientGone(): void {
    if (this.#isEnded) return;
    this.#attempt?.abort();
    this.#end({ outcome: "cancelled" });
  }

  #grew(tokens: number): void {
    if (!this.#hasFirstToken) this.#driver.firstToken(this.#id);
    this.#hasFirstToken = true;
    this.#driver.grew(this.#id, tokens);
  }

  #fail(code: "worker_failed" | "worker_timed_out", message: string): void {
    const outcome = code === "worker_timed_out" ? "timedOut" : "failed";
    if (this.#end({ outcome })) respondWithError(this.#response, code, message);
  }

  /** Reports an end; false if it was not the last one, or the answer has been given already. */
  #end(ending: Ending): boolean {
    this.#attempt = undefined;
    const isFinal = this.#driver.ended(this.#id, ending);
    if (isFinal) this.#isEnded = true;
    return isFinal;
  }
}

/** Whether a worker took too long over its answer; one that could not even be reached in time has failed. */
function isTimeout(error: Error): boolean {
  return error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError;
}

function observed(usage: TokenUsage | undefined): { cachedTokens?: number } {
  return usage?.cachedTokens === undefined ? {} : { cachedTokens: usage.cachedTokens };
}
