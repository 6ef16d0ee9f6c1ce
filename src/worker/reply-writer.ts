import type { ServerResponse } from "node:http";
import {
  type ErrorFields,
  type ReplyHead,
  encodeError,
  encodeFinish,
  encodeOpening,
  encodePiece,
  encodeReply,
  encodeUsageEvent,
} from "../wire/openai-reply.ts";
import { SSE_DONE, sseEvent } from "../wire/sse.ts";
import type { Answer } from "./answer.ts";
import { respondJson } from "./http-reply.ts";

/** What a reply consists of, before the engine has said when. */
export interface PlannedReply {
  readonly head: ReplyHead;
  readonly isStreaming: boolean;
  readonly includesUsage: boolean;
  readonly promptTokens: number;
  readonly answer: Answer;
}

/** Stands for the text while the bytes around it are made. */
const PLACE = '"warmpath"';

/** Writes an answer to a client as the engine produces it: token by token in a stream, else all at the end. */
export class ReplyWriter {
  readonly #response: ServerResponse;
  readonly #planned: PlannedReply;
  /** What stands before and after the text of every event of the stream. */
  readonly #before: string = "";
  readonly #after: string = "";
  #written = 0;

  constructor(response: ServerResponse, planned: PlannedReply) {
    this.#response = response;
    this.#planned = planned;
    if (!planned.isStreaming) return;
    const event = sseEvent(encodePiece(planned.head, JSON.parse(PLACE) as string));
    const at = event.lastIndexOf(PLACE);
    this.#before = event.slice(0, at);
    this.#after = event.slice(at + PLACE.length);
  }

  /** Tokens written so far. */
  get written(): number {
    return this.#written;
  }

  /** More tokens are there; all of them leave in one write. */
  grew(tokens: number): void {
    const { head, isStreaming, answer } = this.#planned;
    const from = this.#written;
    this.#written += tokens;
    if (!isStreaming || this.#isGone) return;
    let events = "";
    if (from === 0) {
      this.#response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
      const opening = encodeOpening(head);
      if (opening !== undefined) events = sseEvent(opening);
    }
    // The token that ends an answer has no piece, and one that a stop has cut away an empty one.
    for (const piece of answer.pieces.slice(from, from + tokens)) {
      if (piece !== "") events += this.#before + JSON.stringify(piece) + this.#after;
    }
    if (events !== "") this.#response.write(events);
  }

  finished(cachedTokens: number): void {
    const { head, isStreaming, includesUsage, answer, promptTokens } = this.#planned;
    if (this.#isGone) return;
    const usage = { promptTokens, outputTokens: this.#written, cachedTokens };
    if (!isStreaming) {
      respondJson(this.#response, 200, encodeReply(head, answer.pieces.join(""), answer.finishReason, usage));
      return;
    }
    const usageEvent = includesUsage ? sseEvent(encodeUsageEvent(head, usage)) : "";
    this.#response.end(sseEvent(encodeFinish(head, answer.finishReason)) + usageEvent + SSE_DONE);
  }

  /** Ends with an error: as the response where nothing has been sent, else as the last event of the stream. */
  failed(status: number, error: ErrorFields): void {
    if (this.#isGone) return;
    if (this.#response.headersSent) this.#response.end(sseEvent(encodeError(error)));
    else respondJson(this.#response, status, encodeError(error));
  }

  /** Cuts the connection in the middle, as a machine that goes away does. */
  cut(): void {
    this.#response.destroy();
  }

  /** True once the connection is closed, though the engine may not have heard of it yet. */
  get #isGone(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }
}
