import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { joinBytes, jsonOf } from "../wire/body.ts";
import { type TokenUsage, usageOf } from "../wire/openai-usage.ts";
import { SseScanner } from "../wire/sse.ts";

/** A response that was read to its end before anything of it went to the client. */
export interface WholeResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: Uint8Array;
  /** Undefined where the worker did not say, or the response is an error. */
  readonly usage: TokenUsage | undefined;
}

/** Told what comes back of one attempt; exactly one of `whole`, `streamEnded` and `failed` is the last call. */
export interface AttemptListener {
  sent(): void;
  /** Bytes of a stream, and how many tokens they complete; false if no more may come until `resume`. */
  streamed(contentType: string, chunk: Uint8Array, tokens: number): boolean;
  /** The stream is over; `isWhole` if it had its end mark and no error. */
  streamEnded(isWhole: boolean, usage: TokenUsage | undefined): void;
  whole(response: WholeResponse): void;
  failed(error: Error, isInsideEvent: boolean): void;
}

/** What is sent to a worker. */
export interface UpstreamRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/**
 * One attempt to have a request answered by one worker. A stream is passed on as it comes, only scanned; anything else is
 * collected, so that it can still be answered by another worker if this one fails half-way.
 */
export class Attempt implements Dispatcher.DispatchHandler {
  readonly #listener: AttemptListener;
  readonly #scanner = new SseScanner();
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #contentType = "";
  #isStream = false;
  #chunks: Uint8Array[] = [];
  #length = 0;
  #isOver = false;

  constructor(listener: AttemptListener) {
    this.#listener = listener;
  }

  /** Sends the request; may fail before it returns. */
  start(dispatcher: Dispatcher, request: UpstreamRequest): void {
    dispatcher.dispatch({ method: "POST", ...request }, this);
  }

  /** Gives the attempt up and tells nobody. */
  abort(): void {
    this.#isOver = true;
    this.#controller?.abort(new Error("the client is gone"));
  }

  resume(): void {
    this.#controller?.resume();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error("the client was gone before the request was sent"));
    else this.#listener.sent();
  }

  onResponseStart(_controller: unknown, status: number, headers: IncomingHttpHeaders): void {
    this.#status = status;
    this.#contentType = headers["content-type"] ?? "application/octet-stream";
    this.#isStream = status === 200 && this.#contentType.startsWith("text/event-stream");
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isOver) return;
    if (!this.#isStream) {
      this.#chunks.push(chunk);
      this.#length += chunk.length;
      return;
    }
    const tokens = this.#scanner.push(chunk);
    if (!this.#listener.streamed(this.#contentType, chunk, tokens)) controller.pause();
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#isStream) {
      const { isDone, hasError, usage } = this.#scanner;
      this.#listener.streamEnded(isDone && !hasError, usage);
      return;
    }
    const body = joinBytes(this.#chunks, this.#length);
    const usage = this.#status < 300 ? usageOf(jsonOf(body)) : undefined;
    this.#listener.whole({ status: this.#status, contentType: this.#contentType, body, usage });
  }

  onResponseError(_controller: unknown, error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#listener.failed(error, this.#scanner.isInsideEvent);
  }
}
