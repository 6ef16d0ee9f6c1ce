import type { ContinuationObstacle, SaidSoFar } from "./openai-continuation.ts";
import { type TokenUsage, field, usageOf } from "./openai-usage.ts";
import { sseEvents } from "./sse.ts";

/** What all events of one stream have in common. */
export interface StreamHead {
  readonly id: unknown;
  readonly created: unknown;
  readonly model: unknown;
}

const EMPTY: Uint8Array = new Uint8Array(0);

/** Keeps what a stream has said, so that another engine can go on from there. Reads whole events. */
export class StreamTranscript {
  readonly #pieces: string[] = [];
  #tokens = 0;
  #head: StreamHead | undefined;
  #obstacle: ContinuationObstacle | undefined;
  #isFinished = false;
  #error: Uint8Array | undefined;
  #errorMessage: string | undefined;
  #usage: TokenUsage | undefined;

  /** Text and tokens that went out. */
  get said(): SaidSoFar {
    // Engines send one token in an event unless told otherwise; those that count aloud are believed.
    return { text: this.#pieces.join(""), tokens: this.#usage?.outputTokens ?? this.#tokens };
  }

  /** Undefined before the first event. */
  get head(): StreamHead | undefined {
    return this.#head;
  }

  /** Something in the stream that cannot be continued from its text. */
  get obstacle(): ContinuationObstacle | undefined {
    return this.#obstacle;
  }

  /** Whether the stream has said why it ends. */
  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** The event with which the engine reported an error; it was kept back. */
  get error(): Uint8Array | undefined {
    return this.#error;
  }

  /** What that error says; undefined where it says nothing. */
  get errorMessage(): string | undefined {
    return this.#errorMessage;
  }

  /** Takes the next events and returns those to pass on: all of them, up to an error. */
  relay(events: Uint8Array): Uint8Array {
    if (this.#error !== undefined) return EMPTY;
    let passed = 0;
    for (const { bytes, data } of sseEvents(events)) {
      const event = data === undefined ? undefined : parsed(data);
      const error = field(event, "error");
      if (typeof error === "object" && error !== null) {
        // Copied, because it outlives the chunk that it came in.
        this.#error = bytes.slice();
        const message = field(error, "message");
        if (typeof message === "string") this.#errorMessage = message;
        return events.subarray(0, passed);
      }
      if (event !== undefined) this.#read(event);
      passed += bytes.length;
    }
    return events;
  }

  #read(event: unknown): void {
    this.#head ??= { id: field(event, "id"), created: field(event, "created"), model: field(event, "model") };
    this.#usage = usageOf(event) ?? this.#usage;
    const choices = field(event, "choices");
    const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
    const delta = field(choice, "delta");
    const piece = field(delta, "content") ?? field(choice, "text");
    if (typeof piece === "string" && piece !== "") {
      this.#pieces.push(piece);
      this.#tokens++;
    }
    if ((field(choice, "finish_reason") ?? undefined) !== undefined) this.#isFinished = true;
    this.#obstacle ??= obstacleIn(delta);
  }
}

/** The events of an engine that goes on where another was cut, made to look as if they were the other's. */
export class StreamSplice {
  readonly #head: StreamHead | undefined;
  readonly #saidTokens: number;

  constructor({ head, said }: StreamTranscript) {
    this.#head = head;
    this.#saidTokens = said.tokens;
  }

  /** Takes the next events and returns what is to be passed on of them. */
  relay(events: Uint8Array): Uint8Array {
    let passed = "";
    for (const { bytes, data } of sseEvents(events)) {
      const event = data === undefined ? undefined : parsed(data);
      if (typeof event !== "object" || event === null || field(event, "error") !== undefined) passed += text(bytes);
      else if (!isOpening(event)) passed += `data: ${JSON.stringify(this.#rewritten(event))}\n\n`;
    }
    return passed === "" ? EMPTY : new TextEncoder().encode(passed);
  }

  #rewritten(event: object): object {
    const usage = usageOf(event);
    const choices = field(event, "choices");
    return {
      ...event,
      ...this.#head,
      ...(Array.isArray(choices) && { choices: choices.map(withoutRole) }),
      ...(usage !== undefined && { usage: this.#added(usage, field(event, "usage") as object) }),
    };
  }

  /** What was said before was a part of the second prompt, and is a part of the answer. */
  #added(usage: TokenUsage, written: object): object {
    const moved = Math.min(this.#saidTokens, usage.promptTokens);
    const prompt = usage.promptTokens - moved;
    const details = field(written, "prompt_tokens_details");
    return {
      ...written,
      prompt_tokens: prompt,
      completion_tokens: usage.outputTokens + moved,
      ...(usage.cachedTokens !== undefined && {
        prompt_tokens_details: { ...(details as object), cached_tokens: Math.min(usage.cachedTokens, prompt) },
      }),
    };
  }
}

/** Whether an event does no more than open an answer, which the client has long seen opened. */
function isOpening(event: object): boolean {
  const choices = field(event, "choices");
  if (!Array.isArray(choices) || choices.length === 0) return false;
  return choices.every((choice: unknown) => {
    const delta = field(choice, "delta");
    const isEnd = (field(choice, "finish_reason") ?? undefined) !== undefined;
    if (isEnd || field(delta, "role") === undefined) return false;
    return Object.entries(delta as object).every(([name, value]) => name === "role" || value === "" || value === null);
  });
}

function withoutRole(choice: unknown): unknown {
  const delta = field(choice, "delta");
  if (field(delta, "role") === undefined) return choice;
  const { role: _, ...rest } = delta as Readonly<Record<string, unknown>>;
  return { ...(choice as object), delta: rest };
}

function obstacleIn(delta: unknown): ContinuationObstacle | undefined {
  const calls = field(delta, "tool_calls");
  if ((Array.isArray(calls) && calls.length > 0) || (field(delta, "function_call") ?? undefined) !== undefined) {
    return "tool-calls";
  }
  const thought = field(delta, "reasoning_content") ?? field(delta, "reasoning");
  return typeof thought === "string" && thought !== "" ? "reasoning" : undefined;
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
