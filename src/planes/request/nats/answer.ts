import type { AnswerController, AnswerHandler } from "../types.ts";
import { type AnswerKind, type ControlVerb, readAnswerHead } from "../parts/nats-frames.ts";

export interface NatsAnswerOptions {
  readonly handler: AnswerHandler;
  /** Tells the worker to pause, go on or stop. */
  readonly control: (verb: ControlVerb) => void;
  /** The last call was made. */
  readonly over: () => void;
  readonly nowMs: () => number;
}

/** One answer on its way back, piece by piece. */
export class NatsAnswer implements AnswerController {
  readonly #options: NatsAnswerOptions;
  /** Pieces that were on their way when the reader asked for a pause. */
  readonly #held: { readonly kind: AnswerKind; readonly data: Uint8Array }[] = [];
  #heardMs: number;
  #isPaused = false;
  #isOver = false;

  constructor(options: NatsAnswerOptions) {
    this.#options = options;
    this.#heardMs = options.nowMs();
  }

  /** When the worker last gave a sign of life. */
  get heardMs(): number {
    return this.#heardMs;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  pause(): void {
    if (this.#isPaused || this.#isOver) return;
    this.#isPaused = true;
    this.#options.control("pause");
  }

  resume(): void {
    if (!this.#isPaused || this.#isOver) return;
    this.#isPaused = false;
    for (let next = this.#held.shift(); next !== undefined; next = this.#held.shift()) {
      this.#take(next.kind, next.data);
      // Whoever reads may ask for the next pause at any piece.
      if (this.#isPaused) return;
    }
    this.#options.control("resume");
  }

  abort(reason: Error): void {
    if (this.#isOver) return;
    this.#options.control("abort");
    this.fail(reason);
  }

  heard(kind: AnswerKind, data: Uint8Array): void {
    this.#heardMs = this.#options.nowMs();
    if (this.#isOver || kind === "beat") return;
    if (this.#isPaused) this.#held.push({ kind, data });
    else this.#take(kind, data);
  }

  /** Ends the answer for a reason that is not the worker's to tell. */
  fail(error: Error): void {
    if (this.#isOver) return;
    this.#end();
    this.#options.handler.onResponseError(this, error);
  }

  #take(kind: AnswerKind, data: Uint8Array): void {
    if (this.#isOver) return;
    const { handler } = this.#options;
    if (kind === "data") handler.onResponseData(this, Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    else if (kind === "end") {
      this.#end();
      handler.onResponseEnd(this, {});
    } else if (kind === "error") this.fail(requestError("ECONNRESET", new TextDecoder().decode(data)));
    else if (kind === "head") {
      const head = readAnswerHead(data);
      if (head === undefined) this.abort(requestError("EPROTO", "the worker's answer is not one"));
      else handler.onResponseStart(this, head.status, head.headers);
    }
  }

  #end(): void {
    this.#isOver = true;
    this.#held.length = 0;
    this.#options.over();
  }
}

/** An error under one of Node's own codes, which tell the gateway whose fault it is. */
export function requestError(code: "ECONNREFUSED" | "ECONNRESET" | "ENETDOWN" | "EPROTO", message: string): Error {
  return Object.assign(new Error(message), { code });
}
