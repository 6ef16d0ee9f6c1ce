import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { ShedReason } from "../core/admission/types.ts";
import { encodeError } from "../wire/openai-reply.ts";
import type { TokenUsage } from "../wire/openai-usage.ts";
import { sseEvent } from "../wire/sse.ts";
import type { RequestPlane } from "../planes/request/types.ts";
import { ChunkWriter } from "./chunk-writer.ts";
import type {
  AttemptEnd,
  AttemptFault,
  DecidedRequest,
  Decider,
  NotRetried,
  OfferedRequest,
  Placement,
} from "./decider.ts";
import type { HeardAnswer } from "./heard-answer.ts";
import type { GatewayLimits } from "./limits.ts";
import { GapRecorder } from "./metrics/gap-recorder.ts";
import { type GatewayErrorCode, errorFields, respondWithError, respondWithShed, shedFields } from "./openai-errors.ts";
import { Attempt, type AttemptListener, type UpstreamRequest, type WholeResponse } from "./proxy.ts";
import type { NextStep, NotContinued, StreamContinuity } from "./stream-continuity.ts";
import { AnswerTooLong, connectionFault, describeFault } from "./worker-fault.ts";

/** What an exchange needs beside its own request. */
export interface ExchangeContext {
  readonly decider: Decider;
  readonly upstreams: RequestPlane;
  readonly limits: GatewayLimits;
}

/** What a client asked for, made ready to be offered and sent. */
export interface PreparedRequest {
  readonly offered: OfferedRequest;
  readonly outgoing: UpstreamRequest;
  readonly isStreaming: boolean;
  /** When the request began to arrive, by `performance.now`. */
  readonly arrivedMs: number;
  /** Keeps the stream whole if its worker is lost; only for a stream that is to be continued then. */
  readonly continuity?: StreamContinuity;
}

/**
 * Growth is told a KV block or so at a time, or a few times a second, whichever comes first: load is counted in blocks, and
 * telling of every token costs as much as scanning it.
 */
const TOLD_TOKENS = 16;

/** Answers up to here go out together with their headers. */
const SHORT_BYTES = 16 * 1024;

/** The headers of a worker's answer that concern the client too. */
const PASSED_BACK: readonly string[] = ["content-type", "x-request-id", "retry-after", "retry-after-ms"];

/** What no header may hold, and what only another carrier than HTTP could bring in one. */
const UNWRITABLE = /[^\t\x20-\x7e\x80-\xff]/;

/**
 * One client's request from its offer to its end: goes where the decider places it, passes the answer on, and reports the
 * one end it has. As long as nothing has reached the client, a failure may be tried again elsewhere; afterwards only a
 * stream that is kept whole can go on with another worker.
 */
export class Exchange implements DecidedRequest, AttemptListener {
  readonly #context: ExchangeContext;
  readonly #response: ServerResponse;
  readonly #prepared: PreparedRequest;
  readonly #id: string;
  readonly #writer: ChunkWriter;
  #outgoing: UpstreamRequest;
  #attempt: Attempt | undefined;
  /** Whether anything of this attempt has reached the client, and a token of it has come. */
  #hasBegun = false;
  #hasToken = false;
  /** What the client is told if the end that was reported is the last. */
  #answer: (() => void) | undefined;
  #isEnded = false;
  #sentMs: number | undefined;
  #firstTokenMs: number | undefined;
  #lastTokenMs = 0;
  #lastChunkMs = 0;
  #stalledMs: number | undefined;
  #gaps: GapRecorder | undefined;
  #untoldTokens = 0;
  /** Who serves it, for the answer that this worker gives. */
  #placedHeaders: Readonly<Record<string, string>> = {};
  #notRetried: NotRetried | undefined;
  #hearing: (() => HeardAnswer) | undefined;
  #heard: HeardAnswer | undefined;

  /** `hearing` begins to hear the answer, where the router has to be told what is cached after it. */
  constructor(
    context: ExchangeContext,
    response: ServerResponse,
    prepared: PreparedRequest,
    hearing?: () => HeardAnswer,
  ) {
    this.#context = context;
    this.#response = response;
    this.#prepared = prepared;
    this.#hearing = hearing;
    this.#id = prepared.offered.id;
    this.#outgoing = prepared.outgoing;
    this.#writer = new ChunkWriter(response, () => this.#drained());
    response.on("close", () => this.#giveUp("client-left"));
    context.decider.offer(prepared.offered, this);
  }

  place({ worker, url, dpRank, decision, isToBeHeard }: Placement): void {
    if (this.#isEnded) return;
    this.#heard = isToBeHeard ? (this.#heard ?? this.#hearing?.()) : undefined;
    // Once is enough, and whoever did not hear the beginning has nothing to tell.
    this.#hearing = undefined;
    // What a worker said of which nothing was passed on is not a part of the answer.
    if (!this.#response.headersSent) this.#prepared.continuity?.beginAgain();
    const outgoing = this.#outgoing;
    this.#placedHeaders = { "x-warmpath-worker": worker, "x-warmpath-decision": String(decision ?? "fallback") };
    this.#answer = undefined;
    this.#sentMs = undefined;
    this.#hasBegun = false;
    this.#hasToken = false;
    const { dropsUsage } = outgoing;
    this.#attempt = new Attempt(this, { dropsUsage, listener: this.#heard?.listener });
    // Rank 0 is named too: an engine that is told nothing chooses a rank by itself.
    const { headers: given } = outgoing;
    const headers = dpRank === undefined ? given : { ...given, "x-data-parallel-rank": String(dpRank) };
    this.#attempt.start(this.#context.upstreams.get(url, worker), { ...outgoing, headers });
  }

  shed(reason: ShedReason): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (this.#response.headersSent) this.#response.end(sseEvent(encodeError(shedFields(reason))));
    else respondWithShed(this.#response, reason);
  }

  over(notRetried?: NotRetried): void {
    this.#isEnded = true;
    this.#notRetried = notRetried;
    this.#answer?.();
    this.#answer = undefined;
  }

  sent(): void {
    this.#sentMs = performance.now();
    this.#context.decider.sent(this.#id);
  }

  streamed(headers: IncomingHttpHeaders, chunk: Uint8Array, tokens: number): boolean {
    const response = this.#response;
    const { continuity } = this.#prepared;
    const events = continuity === undefined ? chunk : continuity.relay(chunk);
    const nowMs = performance.now();
    this.#lastChunkMs = nowMs;
    if (events.length === 0) return true;
    this.#hasBegun = true;
    if (!response.headersSent) {
      response.writeHead(200, { ...this.#headers(headers), "cache-control": "no-cache" });
      // An answer that has begun is never asked for again with this body.
      this.#prepared.outgoing.lent?.release();
    }
    const mayGoOn = this.#writer.write(events);
    if (tokens > 0) this.#grew(tokens, nowMs);
    if (!mayGoOn) this.#stalledMs = nowMs;
    return mayGoOn;
  }

  streamEnded(end: {
    readonly isDone: boolean;
    readonly hasError: boolean;
    readonly usage: TokenUsage | undefined;
  }): void {
    if (end.isDone && !end.hasError) {
      this.#response.end();
      this.#complete(end.usage);
    } else if (this.#hasBegun) {
      const broken: AttemptEnd = { outcome: "failed", fault: end.hasError ? "stream-error" : "stream-cut" };
      const withheld = this.#prepared.continuity?.withheld;
      const message = "the worker ended its stream before its end";
      // What the worker said of it is in the stream. That its end mark is missing is nothing that clients look at.
      if (end.hasError && withheld === undefined) this.#goOn(undefined, broken, () => "");
      else {
        this.#breakOff(
          broken,
          (why) => withheld ?? sseEvent(encodeError(errorFields("worker_failed", withReason(message, why)))),
        );
      }
    } else if (end.hasError) {
      const reported = this.#prepared.continuity?.reported ?? "no more is known of it";
      this.#fail("stream-error", "worker_failed", `the worker reported an error: ${reported}`);
    } else this.#fail("stream-cut", "worker_failed", "the worker ended its stream before it began");
  }

  whole({ status, headers, body, usage }: WholeResponse): void {
    const response = this.#response;
    if (response.headersSent) {
      this.#refusedToContinue(status);
      return;
    }
    const answer = (): void => {
      response.writeHead(status, { ...this.#headers(headers), "content-length": body.length });
      // Node joins headers and a text into one write, headers and bytes are two; byte by byte, a text is the same.
      if (body.length > SHORT_BYTES) response.end(body);
      else response.end(Buffer.from(body.buffer, body.byteOffset, body.length).toString("latin1"), "latin1");
    };
    if (status < 300) {
      const { decider } = this.#context;
      if (usage !== undefined) decider.grew(this.#id, usage.outputTokens);
      answer();
      this.#heard?.hear(body);
      this.#complete(usage);
      return;
    }
    this.#end(refusal(status), answer);
  }

  failed(error: Error): void {
    const mayRetry = !(error instanceof AnswerTooLong);
    this.#fail(connectionFault(error), "worker_failed", `the worker failed: ${error.message}`, mayRetry);
  }

  /** Ends what has taken too long; called every now and then with the time. */
  checkDeadlines(nowMs: number): void {
    this.#tellGrowth();
    if (this.#isEnded || this.#attempt === undefined || this.#sentMs === undefined) return;
    const { limits } = this.#context;
    if (this.#stalledMs !== undefined) {
      // A paused stream says nothing about the worker.
      if (nowMs - this.#stalledMs > limits.clientStallMs) this.#giveUp("client-stalled");
    } else if (!this.#hasToken) {
      const allowedMs = this.#prepared.isStreaming ? limits.firstByteMs : limits.answerMs;
      if (nowMs - this.#sentMs > allowedMs) this.#timeOut("first-byte-timeout", allowedMs);
    } else if (nowMs - this.#lastChunkMs > limits.gapMs) this.#timeOut("gap-timeout", limits.gapMs);
  }

  /** Ends a request that the gateway can wait for no longer. */
  abandon(): void {
    if (this.#isEnded) return;
    this.#attempt?.abort();
    const code = "shutting_down";
    const message = "the gateway is shutting down";
    // At once: whether the decider still has a word to say is no longer waited for.
    if (this.#response.headersSent) this.#response.end(sseEvent(encodeError(errorFields(code, message))));
    else this.#respondWithError(code, message);
    this.#end({ outcome: "failed", mayRetry: false, fault: "shutdown" });
  }

  /** In one piece with those of the answer: headers set one by one take Node's slow way out. */
  #headers(headers: IncomingHttpHeaders): Record<string, string> {
    const notRetried = this.#notRetried === undefined ? {} : { "x-warmpath-not-retried": this.#notRetried };
    return { ...this.#placedHeaders, ...passedBack(headers), ...notRetried };
  }

  #drained(): void {
    this.#stalledMs = undefined;
    this.#lastChunkMs = performance.now();
    this.#attempt?.resume();
  }

  /** Nobody reads any more: frees the worker at once. */
  #giveUp(fault: AttemptFault): void {
    if (this.#isEnded) return;
    this.#attempt?.abort();
    this.#end({ outcome: "cancelled", fault });
    this.#response.destroy();
  }

  #timeOut(fault: AttemptFault, allowedMs: number): void {
    this.#attempt?.abort();
    this.#fail(fault, "worker_timed_out", describeFault(fault, allowedMs));
  }

  /** Reports a failure, and tells the client unless somebody else tries. */
  #fail(fault: AttemptFault, code: GatewayErrorCode, message: string, mayRetry = true): void {
    const end: AttemptEnd = { outcome: code === "worker_timed_out" ? "timedOut" : "failed", fault, mayRetry };
    const inStream = (why: NotContinued | undefined): string =>
      sseEvent(encodeError(errorFields(code, withReason(message, why))));
    if (this.#hasBegun) this.#breakOff(end, inStream);
    else if (this.#response.headersSent) this.#end(end, () => this.#response.end(inStream("no-worker")));
    else this.#end(end, () => this.#respondWithError(code, message));
  }

  /** The stream was cut. Has it continued where that is wanted and possible; else `lastWords` are the end of it. */
  #breakOff(end: AttemptEnd, lastWords: LastWords): void {
    const step = this.#prepared.continuity?.next();
    this.#attempt = undefined;
    if (!(step instanceof Promise)) this.#goOn(step, end, lastWords);
    else void this.#goOnLater(step, end, lastWords);
  }

  async #goOnLater(step: Promise<NextStep>, end: AttemptEnd, lastWords: LastWords): Promise<void> {
    const known = await step;
    // The client may have left meanwhile.
    if (!this.#isEnded) this.#goOn(known, end, lastWords);
  }

  #goOn(step: NextStep | undefined, end: AttemptEnd, lastWords: LastWords): void {
    const response = this.#response;
    switch (step?.kind) {
      case "continue":
        this.#outgoing = { ...this.#outgoing, body: step.body, lent: undefined };
        this.#end({ ...end, continuation: step.continuation }, () => response.end(lastWords("no-worker")));
        break;
      case "finish":
        response.end(step.events);
        this.#end({ ...end, outcome: "completed" });
        break;
      default:
        response.end(lastWords(step?.why));
        this.#end({ ...end, mayRetry: false, ...(step !== undefined && { notContinued: step.why }) });
    }
  }

  /** The worker that was to go on with a stream has answered something else. */
  #refusedToContinue(status: number): void {
    const message = `the worker that was to continue the stream answered with status ${status}`;
    const { mayRetry, ...end } = refusal(status);
    this.#end({ ...end, mayRetry: mayRetry || status < 300 }, () =>
      this.#response.end(sseEvent(encodeError(errorFields("worker_failed", message)))),
    );
  }

  #respondWithError(code: GatewayErrorCode, message: string): void {
    for (const [name, value] of Object.entries(this.#headers({}))) this.#response.setHeader(name, value);
    const isOverBudget = this.#notRetried === "retry-budget";
    respondWithError(this.#response, code, isOverBudget ? `${message}; the retry budget is used up` : message);
  }

  #grew(tokens: number, nowMs: number): void {
    const { decider } = this.#context;
    if (!this.#hasToken) {
      this.#hasToken = true;
      decider.firstToken(this.#id);
      decider.grew(this.#id, tokens);
    } else {
      this.#untoldTokens += tokens;
      if (this.#untoldTokens >= TOLD_TOKENS) this.#tellGrowth();
    }
    if (this.#firstTokenMs === undefined) this.#firstTokenMs = nowMs;
    else {
      this.#gaps ??= new GapRecorder();
      this.#gaps.add(nowMs - this.#lastTokenMs, tokens);
    }
    this.#lastTokenMs = nowMs;
  }

  #tellGrowth(): void {
    if (this.#untoldTokens === 0) return;
    this.#context.decider.grew(this.#id, this.#untoldTokens);
    this.#untoldTokens = 0;
  }

  /** The client has all of its answer. */
  #complete(usage: TokenUsage | undefined): void {
    this.#end({ outcome: "completed", ...observed(usage), kept: this.#heard?.keptBlocks() });
  }

  /** Reports an end; `answer` waits until it is known to be the last. */
  #end(end: AttemptEnd, answer?: () => void): void {
    this.#attempt = undefined;
    this.#tellGrowth();
    this.#answer = answer;
    if (answer === undefined) this.#isEnded = true;
    const { arrivedMs } = this.#prepared;
    this.#context.decider.ended(this.#id, {
      ...end,
      durationMs: performance.now() - arrivedMs,
      ...(this.#firstTokenMs !== undefined && { ttftMs: this.#firstTokenMs - arrivedMs }),
      ...(this.#gaps !== undefined && { gaps: this.#gaps }),
    });
  }
}

/** What a client is told at the end of a stream that was cut, and why that is the end. */
type LastWords = (why: NotContinued | undefined) => string | Uint8Array;

function withReason(message: string, why: NotContinued | undefined): string {
  return why === undefined ? message : `${message}; the stream could not be continued: ${why}`;
}

/** How an attempt ended that was answered with this status. */
function refusal(status: number): AttemptEnd {
  // Another worker would say the same to a bad request, but may well serve what this one could not.
  const mayRetry = status === 429 || status >= 500;
  return { outcome: status >= 500 && status !== 503 ? "failed" : "rejected", mayRetry, fault: "status" };
}

function observed(usage: TokenUsage | undefined): { cachedTokens?: number } {
  return usage?.cachedTokens === undefined ? {} : { cachedTokens: usage.cachedTokens };
}

function passedBack(headers: IncomingHttpHeaders): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of PASSED_BACK) {
    const [value] = [headers[name]].flat();
    if (value !== undefined && !UNWRITABLE.test(value)) kept[name] = value;
  }
  return kept;
}
