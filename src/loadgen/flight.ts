import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import type { Clock, Nanoseconds } from "../core/clock.ts";
import { type RequestRecord, requestRecord, UNAVAILABLE } from "../core/request-record.ts";
import { tellContent } from "../wire/answer-content.ts";
import { AnswerText } from "../wire/answer-text.ts";
import { joinBytes, jsonOf } from "../wire/body.ts";
import { type TokenUsage, usageOf } from "../wire/openai-usage.ts";
import { SseScanner } from "../wire/sse.ts";
import type { WorkloadRequest } from "../workload/request.ts";
import { brokenOutcome, COMPLETED, failedOutcome, type Outcome, refusedOutcome } from "./outcome.ts";
import type { WrittenPrompt } from "./types.ts";

/** Told what happens to a request while it happens. */
export interface FlightListener {
  readonly clock: Clock;
  /** So many events with content came in one read, `gapNs` after the read before; undefined for the first. */
  content(flight: Flight, events: number, gapNs: Nanoseconds | undefined, nowNs: Nanoseconds): void;
  /** The last call. */
  ended(flight: Flight, outcome: Outcome): void;
}

const ROOM = 64;

/**
 * One request on the wire, from the moment it is due. Time is taken once per read, in the socket's own callback; bytes are
 * scanned, not parsed, and everything else waits for the end.
 */
export class Flight implements Dispatcher.DispatchHandler {
  readonly request: WorkloadRequest;
  readonly #listener: FlightListener;
  readonly #scanner: SseScanner;
  readonly #text: AnswerText | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #isOver = false;
  #status = 0;
  #isStream = false;
  #headers: IncomingHttpHeaders = {};
  #usage: TokenUsage | undefined;
  #errorEvent: unknown;
  #sentNs: Nanoseconds | undefined;
  #firstByteNs: Nanoseconds | undefined;
  #timesNs: Float64Array;
  #events = 0;
  #chunks: Uint8Array[] = [];
  #length = 0;

  constructor(request: WorkloadRequest, kind: WrittenPrompt["kind"], needsText: boolean, listener: FlightListener) {
    this.request = request;
    this.#listener = listener;
    this.#text = needsText ? new AnswerText(kind) : undefined;
    this.#scanner = new SseScanner({ listener: this.#text });
    this.#timesNs = new Float64Array(Math.min(request.outputTokens, ROOM * ROOM) + ROOM);
  }

  /** The answer as JSON text; only complete when the flight is. */
  get escapedText(): string {
    return this.#text?.toString() ?? "";
  }

  get outputTokens(): number {
    return this.#usage?.outputTokens ?? this.#events;
  }

  /** Events with content, which is what was counted while they came. */
  get contentEvents(): number {
    return this.#events;
  }

  /** Gives it up with this outcome. */
  end(outcome: Outcome): void {
    if (this.#isOver) return;
    this.#over(outcome);
    this.#controller?.abort(new Error("the client gave up"));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error("the client gave up before the request was sent"));
    else this.#sentNs = this.#listener.clock.nowNs();
  }

  onResponseStart(_controller: unknown, status: number, headers: IncomingHttpHeaders): void {
    this.#firstByteNs = this.#listener.clock.nowNs();
    this.#status = status;
    this.#headers = headers;
    this.#isStream = status === 200 && headers["content-type"]?.startsWith("text/event-stream") === true;
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    if (this.#isOver) return;
    const nowNs = this.#listener.clock.nowNs();
    if (!this.#isStream) {
      this.#chunks.push(chunk);
      this.#length += chunk.length;
      return;
    }
    const scanner = this.#scanner;
    const before = scanner.contentEvents;
    const events = scanner.relay(chunk);
    const came = scanner.contentEvents - before;
    if (came > 0) this.#content(came, nowNs);
    if (scanner.hasError) this.#errorEvent ??= errorEventOf(events);
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    this.#over(this.#isStream ? this.#streamOutcome() : this.#wholeOutcome());
  }

  onResponseError(_controller: unknown, error: Error): void {
    if (this.#isOver) return;
    this.#usage = this.#scanner.usage;
    const { code } = error as NodeJS.ErrnoException;
    const said = error.message === "" ? (code ?? error.name) : error.message;
    this.#over(failedOutcome(said, this.#status === 0 ? undefined : this.#status));
  }

  record({ account, shedReason, failure }: Outcome): RequestRecord {
    const { request } = this;
    const times = this.#timesNs.slice(0, this.#events);
    const isUnfinished = account === "unfinished";
    return requestRecord({
      id: String(request.id),
      session: request.sessionName,
      turn: request.turn,
      intendedNs: request.arrivalNs,
      sentNs: this.#sentNs,
      firstByteNs: this.#firstByteNs,
      firstContentNs: times.length === 0 ? undefined : times[0],
      lastContentNs: times.length === 0 ? undefined : times[times.length - 1],
      endNs: isUnfinished ? undefined : this.#listener.clock.nowNs(),
      promptTokens: this.#usage?.promptTokens ?? request.promptTokens,
      outputTokens: this.outputTokens,
      observedCachedTokens: this.#usage?.cachedTokens ?? UNAVAILABLE,
      worker: this.#worker(),
      attempts: this.#sentNs === undefined ? 0 : 1,
      account,
      shedReason,
      failure,
      decision: headerOf(this.#headers, "x-warmpath-decision"),
      tokenTimes: times.length === 0 ? undefined : { form: "chunks", timesNs: times },
    });
  }

  #content(events: number, nowNs: Nanoseconds): void {
    const first = this.#events;
    const last = first + events;
    if (last > this.#timesNs.length) {
      const larger = new Float64Array(2 * last);
      larger.set(this.#timesNs);
      this.#timesNs = larger;
    }
    const gapNs = first === 0 ? undefined : nowNs - this.#timesNs[first - 1];
    this.#timesNs.fill(nowNs, first, last);
    this.#events = last;
    this.#listener.content(this, events, gapNs, nowNs);
  }

  #streamOutcome(): Outcome {
    const scanner = this.#scanner;
    const { rest } = scanner;
    if (rest.length > 0) {
      const before = scanner.contentEvents;
      scanner.finish();
      const came = scanner.contentEvents - before;
      if (came > 0) this.#content(came, this.#listener.clock.nowNs());
    }
    this.#usage = scanner.usage;
    return scanner.isDone && !scanner.hasError ? COMPLETED : brokenOutcome(this.#errorEvent);
  }

  /** An answer in one piece: an error, or a server that does not stream. */
  #wholeOutcome(): Outcome {
    const body = joinBytes(this.#chunks, this.#length);
    const reply = jsonOf(body);
    if (this.#status !== 200) return refusedOutcome(this.#status, reply);
    this.#usage = usageOf(reply);
    if (this.#usage === undefined) return failedOutcome("the answer is neither a stream nor a completion", 200);
    if (this.#text !== undefined) tellContent(body, this.#text);
    this.#content(1, this.#listener.clock.nowNs());
    return COMPLETED;
  }

  /** Who served it; undefined if nobody did, as far as can be known. */
  #worker(): string | undefined {
    return headerOf(this.#headers, "x-warmpath-worker") ?? (this.#status === 200 ? UNAVAILABLE : undefined);
  }

  #over(outcome: Outcome): void {
    this.#isOver = true;
    this.#usage ??= this.#scanner.usage;
    this.#listener.ended(this, outcome);
  }
}

function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" ? value : undefined;
}

/** The event of a stream that tells of an error. */
function errorEventOf(events: Uint8Array): unknown {
  for (const line of new TextDecoder().decode(events).split("\n")) {
    if (!line.startsWith("data:") || !line.includes('"error"')) continue;
    try {
      return JSON.parse(line.slice("data:".length));
    } catch {
      continue;
    }
  }
  return undefined;
}
