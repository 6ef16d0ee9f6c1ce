import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import type { Upstream } from "../planes/request/types.ts";
import { jsonOf } from "../wire/body.ts";
import { BodyPieces } from "../wire/body-pieces.ts";
import { type TokenUsage, usageOf } from "../wire/openai-usage.ts";
import { SseScanner, type SseScannerOptions } from "../wire/sse.ts";
import type { LentBody } from "./lent-body.ts";
import { AnswerTooLong } from "./worker-fault.ts";

/** A response that was read to its end before anything of it went to the client. */
export interface WholeResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Uint8Array;
  /** Undefined where the worker did not say, or the response is an error. */
  readonly usage: TokenUsage | undefined;
}

/** Told what comes back of one attempt; exactly one of `whole`, `streamEnded` and `failed` is the last call. */
export interface AttemptListener {
  sent(): void;
  /** Bytes of a stream, and how many tokens they complete; false if no more may come until `resume`. */
  streamed(headers: IncomingHttpHeaders, chunk: Uint8Array, tokens: number): boolean;
  /** The stream is over; whether it had its end mark, and whether it told of an error. */
  streamEnded(end: {
    readonly isDone: boolean;
    readonly hasError: boolean;
    readonly usage: TokenUsage | undefined;
  }): void;
  whole(response: WholeResponse): void;
  failed(error: Error): void;
}

/** What is sent to a worker. */
export interface UpstreamRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** The body, where its memory is to be given back. */
  readonly lent?: LentBody | undefined;
  /** Leaves the usage out of the stream again that the client did not ask for. */
  readonly dropsUsage: boolean;
}

/** What is held of an answer is bounded: a worker that has gone wrong must not take the gateway with it. */
const LONGEST_WHOLE_BYTES = 64 * 1024 * 1024;
const LONGEST_EVENT_BYTES = 4 * 1024 * 1024;

/** What a worker gets to end an answer in which it has said all: then its connection can be used again. */
const LINGER_MS = 1000;

/**
 * One attempt to have a request answered by one worker. A stream is passed on event by event as it comes, only scanned;
 * anything else is collected, so that it can still be answered by another worker if this one fails half-way.
 */
export class Attempt implements Dispatcher.DispatchHandler {
  readonly #listener: AttemptListener;
  readonly #scanner: SseScanner;
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #isStream = false;
  readonly #pieces = new BodyPieces();
  #isOver = false;
  #lingering: NodeJS.Timeout | undefined;

  constructor(listener: AttemptListener, options: SseScannerOptions = {}) {
    this.#listener = listener;
    this.#scanner = new SseScanner(options);
  }

  /** Sends the request; may fail before it returns. */
  start(upstream: Upstream, { path, headers, body, lent }: UpstreamRequest): void {
    upstream.dispatch({ method: "POST", path, headers, body, bodyRead: lent?.lend() }, this);
  }

  /** Gives the attempt up and tells nobody. */
  abort(): void {
    this.#isOver = true;
    this.#controller?.abort(new Error("the client is gone"));
  }

  /** The client reads again. */
  resume(): void {
    const controller = this.#controller;
    if (controller === undefined) return;
    if (this.#isWhole && !this.#isOver) this.#endBeforeWorker(controller);
    controller.resume();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error("the client was gone before the request was sent"));
    else this.#listener.sent();
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // Whatever carries an answer may carry one that HTTP has no words for.
    if (!(status >= 100 && status <= 999)) {
      this.#giveUp(controller, Object.assign(new Error(`its answer has the status ${status}`), { code: "EPROTO" }));
      return;
    }
    this.#status = status;
    this.#headers = headers;
    this.#isStream = status === 200 && isEventStream(headers["content-type"]);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isOver) return;
    if (!this.#isStream) {
      this.#pieces.add(chunk);
      if (this.#pieces.length > LONGEST_WHOLE_BYTES)
        this.#giveUp(controller, new AnswerTooLong("the answer has no end"));
      return;
    }
    const scanner = this.#scanner;
    const before = scanner.contentEvents;
    const events = scanner.relay(chunk);
    if (scanner.rest.length > LONGEST_EVENT_BYTES) {
      this.#giveUp(controller, new AnswerTooLong("an event of the stream has no end"));
      return;
    }
    if (events.length === 0) return;
    if (!this.#listener.streamed(this.#headers, events, scanner.contentEvents - before)) controller.pause();
    else if (this.#isWhole) this.#endBeforeWorker(controller);
  }

  onResponseEnd(): void {
    clearTimeout(this.#lingering);
    if (this.#isOver) return;
    if (this.#isStream) this.#endStream();
    else {
      this.#isOver = true;
      const body = this.#pieces.join();
      const usage = this.#status < 300 ? usageOf(jsonOf(body)) : undefined;
      this.#listener.whole({ status: this.#status, headers: this.#headers, body, usage });
    }
  }

  onResponseError(_controller: unknown, error: Error): void {
    clearTimeout(this.#lingering);
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#isWhole) this.#listener.streamEnded(this.#scanner);
    else this.#listener.failed(error);
  }

  /** Whether all of a stream has come, whatever becomes of the connection. */
  get #isWhole(): boolean {
    return this.#scanner.isDone && !this.#scanner.hasError;
  }

  /** Nothing that follows an end mark concerns the client, least of all how long the worker takes to be done. */
  #endBeforeWorker(controller: Dispatcher.DispatchController): void {
    this.#isOver = true;
    this.#lingering = setTimeout(() => controller.abort(new Error("the answer went on after its end")), LINGER_MS);
    this.#lingering.unref();
    this.#listener.streamEnded(this.#scanner);
  }

  #giveUp(controller: Dispatcher.DispatchController, error: Error): void {
    this.#isOver = true;
    this.#pieces.clear();
    controller.abort(error);
    this.#listener.failed(error);
  }

  #endStream(): void {
    const scanner = this.#scanner;
    const before = scanner.contentEvents;
    const rest = scanner.finish();
    if (rest.length > 0) this.#listener.streamed(this.#headers, rest, scanner.contentEvents - before);
    this.#isOver = true;
    this.#listener.streamEnded(scanner);
  }
}

/** A worker may say it twice, and in any case. */
function isEventStream(contentType: string | readonly string[] | undefined): boolean {
  const [type] = [contentType].flat();
  return type?.toLowerCase().startsWith("text/event-stream") === true;
}
