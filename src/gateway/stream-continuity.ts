import { fullBlocks, sequenceHashes } from "../core/hash.ts";
import type { Continuation } from "../core/open-request.ts";
import {
  type ContinuationObstacle,
  type SaidSoFar,
  continuationObstacle,
  tokensLeft,
} from "../wire/openai-continuation.ts";
import { encodeFinish } from "../wire/openai-reply.ts";
import { usageAsked } from "../wire/openai-request.ts";
import { SSE_DONE, sseEvent } from "../wire/sse.ts";
import { StreamSplice, StreamTranscript } from "../wire/stream-transcript.ts";
import { type AnsweredPrompt, type RequestWithAnswer, withAnswer } from "./answered-prompt.ts";

export interface StreamContinuityOptions extends AnsweredPrompt {
  /** Whether the worker is asked for the usage, for whoever wants it. */
  readonly asksUsage: boolean;
}

/** Why a cut stream was not continued; stable, for metrics and messages. */
export type NotContinued = ContinuationObstacle | "continued-before" | "no-worker";

/** What to do about a stream that was cut. */
export type NextStep =
  /** Ask another worker for the rest. */
  | { readonly kind: "continue"; readonly continuation: Continuation; readonly body: Uint8Array }
  /** The client has all of the answer; only these last events are missing. */
  | { readonly kind: "finish"; readonly events: string }
  | { readonly kind: "stop"; readonly why: NotContinued };

/**
 * Keeps a stream whole although its worker is lost: remembers what was said, asks for the rest, and passes the rest on as if
 * it were of one piece. Exists only for requests that want it; it reads every event, which others are spared.
 */
export class StreamContinuity {
  readonly #options: StreamContinuityOptions;
  readonly #obstacle: ContinuationObstacle | undefined;
  #transcript = new StreamTranscript();
  #splice: StreamSplice | undefined;

  constructor(options: StreamContinuityOptions) {
    this.#options = options;
    this.#obstacle = continuationObstacle(options.kind, options.body);
  }

  /** The event with which a worker reported an error, where the client has not seen it. */
  get withheld(): Uint8Array | undefined {
    return this.#splice === undefined ? this.#transcript.error : undefined;
  }

  /** What that error says, where it says anything. */
  get reported(): string | undefined {
    return this.#transcript.errorMessage;
  }

  /** Another worker begins from the beginning; the client has seen nothing. */
  beginAgain(): void {
    this.#transcript = new StreamTranscript();
  }

  /** Takes whole events of a worker and returns those for the client. */
  relay(events: Uint8Array): Uint8Array {
    if (this.#obstacle !== undefined) return events;
    return (this.#splice ?? this.#transcript).relay(events);
  }

  /** The stream was cut: says what can be done. Whatever is relayed after `continue` is the rest. */
  next(): NextStep | Promise<NextStep> {
    if (this.#splice !== undefined) return { kind: "stop", why: "continued-before" };
    const { isFinished, said } = this.#transcript;
    const why = this.#obstacle ?? this.#transcript.obstacle;
    if (why !== undefined) return { kind: "stop", why };
    if (isFinished) return { kind: "finish", events: SSE_DONE };
    if (tokensLeft(this.#options.body, said) === 0) return { kind: "finish", events: this.#cutByLimit() };
    this.#splice = new StreamSplice(this.#transcript);
    return this.#restOrStop(said);
  }

  /** Whatever is wrong with the rest, the client has a stream that wants an end: here nobody else would give it one. */
  #restOrStop(said: SaidSoFar): NextStep | Promise<NextStep> {
    const stop: NextStep = { kind: "stop", why: "unusual-prompt" };
    try {
      const step = this.#rest(said);
      return step instanceof Promise ? step.catch(() => stop) : step;
    } catch {
      return stop;
    }
  }

  #rest(said: SaidSoFar): NextStep | Promise<NextStep> {
    const request = withAnswer(this.#options, said);
    // What was understood once is understood with an answer behind it.
    if (request === undefined) return { kind: "stop", why: "unusual-prompt" };
    const { encoded } = request;
    const step = (prompt: Uint32Array): NextStep => this.#asked(request, prompt);
    return encoded instanceof Uint32Array ? step(encoded) : encoded.then(step);
  }

  #asked({ body, maxOutputTokens }: RequestWithAnswer, prompt: Uint32Array): NextStep {
    const { identity, blockTokens, asksUsage } = this.#options;
    const options = (body as { stream_options?: unknown }).stream_options;
    const sent = asksUsage ? { ...body, stream_options: usageAsked(options) } : body;
    const continuation: Continuation = {
      promptTokens: prompt.length,
      sequence: sequenceHashes(prompt, blockTokens, identity),
      blocks: fullBlocks(prompt.length, blockTokens),
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    };
    return { kind: "continue", continuation, body: new TextEncoder().encode(JSON.stringify(sent)) };
  }

  /** The last token was the last that was allowed, so only the word that says so can have been lost. */
  #cutByLimit(): string {
    const { id, model, created } = this.#transcript.head ?? {};
    const head = { kind: this.#options.kind, id: String(id), model: String(model), createdSeconds: Number(created) };
    return sseEvent(encodeFinish(head, "length")) + SSE_DONE;
  }
}
