/**
 * Server-sent events, as OpenAI-compatible servers stream them.
 *
 * A router forwards the bytes as they are and needs to know little of them: that content came, that the stream is whole,
 * and what the usage says. So the scanner looks for a handful of keys in the bytes and parses only the event with the
 * usage.
 */
import { type ContentListener, isContent, matches, valueAfter } from "./answer-content.ts";
import { field, type TokenUsage, usageOf } from "./openai-usage.ts";

/** Ends every stream that is whole. */
export const SSE_DONE = "data: [DONE]\n\n";

/** One event that carries this JSON text. */
export function sseEvent(json: string): string {
  return `data: ${json}\n\n`;
}

/** Events one by one, each with the text of its data; one without, such as a comment, has none. */
export function* sseEvents(
  all: Uint8Array,
): Generator<{ readonly bytes: Uint8Array; readonly data: string | undefined }> {
  const decoder = new TextDecoder();
  for (let from = 0; from < all.length;) {
    const end = eventEnd(all, from) || all.length;
    const start = dataStart(all, from, end);
    const data = start < 0 ? undefined : decoder.decode(all.subarray(start, end)).trimEnd();
    yield { bytes: all.subarray(from, end), data };
    from = end;
  }
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;
const LETTER_C = 0x63;
const LETTER_E = 0x65;
const LETTER_F = 0x66;
const LETTER_R = 0x72;
const LETTER_T = 0x74;
const LETTER_U = 0x75;

const USAGE: Uint8Array = bytes("usage");
const ERROR: Uint8Array = bytes("error");
const DATA: Uint8Array = bytes("data:");
const DONE: Uint8Array = bytes("[DONE]");

const BLANK_LINE: Uint8Array = bytes("\n\n");
const EMPTY: Uint8Array = new Uint8Array(0);

/** From here on the beginning of an event is not looked through again with every piece that follows, nor copied. */
const LONG_BYTES = 16 * 1024;
/** So many bytes before a piece can be the beginning of an event's end. */
const BYTES_OF_END = 2;

export interface SseScannerOptions {
  /** Leaves out the event with nothing but the usage, for clients that did not ask for it. */
  readonly dropsUsage?: boolean;
  /** Told what the stream says. */
  readonly listener?: ContentListener | undefined;
}

/** Reads a stream chunk by chunk, wherever the chunks are cut. */
export class SseScanner {
  /** Events with content that is not empty; engines send one token in each, unless they are configured otherwise. */
  contentEvents = 0;
  /** Whether the stream's end mark came. */
  isDone = false;
  /** Whether the server reported an error inside the stream. */
  hasError = false;
  /** What the stream's usage said, where it said anything. */
  usage: TokenUsage | undefined;
  readonly #dropsUsage: boolean;
  readonly #listener: ContentListener | undefined;
  #rest: Uint8Array = EMPTY;
  /** Where the rest lies if it is long, with room for more behind it. */
  #room: Uint8Array = EMPTY;

  constructor(options: SseScannerOptions = {}) {
    this.#dropsUsage = options.dropsUsage ?? false;
    this.#listener = options.listener;
  }

  /** The beginning of an event whose end has not come. */
  get rest(): Uint8Array {
    return this.#rest;
  }

  /** Takes the next bytes and returns how many events with content were completed by them. */
  push(chunk: Uint8Array): number {
    const before = this.contentEvents;
    this.relay(chunk);
    return this.contentEvents - before;
  }

  /** Takes the next bytes and returns those to pass on: whole events, so that a stream that breaks is never cut inside one. */
  relay(chunk: Uint8Array): Uint8Array {
    if (this.#rest.length > LONG_BYTES && !this.#endsIn(chunk)) {
      this.#append(chunk);
      return EMPTY;
    }
    const all = this.#rest.length === 0 ? chunk : joined(this.#rest, chunk);
    let kept: Uint8Array | undefined;
    let from = 0;
    let keptFrom = 0;
    for (let end = eventEnd(all, from); end > 0; end = eventEnd(all, from)) {
      if (this.#event(all, from, end) && this.#dropsUsage) {
        const before = all.subarray(keptFrom, from);
        kept = kept === undefined ? before : joined(kept, before);
        keptFrom = end;
      }
      from = end;
    }
    // A copy, because the chunk's memory belongs to whoever reads the socket.
    this.#rest = from === all.length ? EMPTY : all.slice(from);
    this.#room = EMPTY;
    if (kept !== undefined) return joined(kept, all.subarray(keptFrom, from));
    return from === all.length ? all : all.subarray(0, from);
  }

  /**
   * The stream is over. What came after the last whole event is one too if only its blank line is missing, which is then put
   * behind it; the beginning of an event is nothing, or whatever is sent after it would be taken for the rest.
   */
  finish(): Uint8Array {
    const rest = this.#rest;
    this.#rest = EMPTY;
    this.#room = EMPTY;
    if (!lacksOnlyItsEnd(rest)) return EMPTY;
    const isBareUsage = this.#event(rest, 0, rest.length);
    return isBareUsage && this.#dropsUsage ? EMPTY : joined(withoutLineEnd(rest), BLANK_LINE);
  }

  /** Whether the event that has begun ends in this piece. */
  #endsIn(chunk: Uint8Array): boolean {
    const before = this.#rest.subarray(this.#rest.length - BYTES_OF_END);
    return eventEnd(joined(before, chunk.subarray(0, BYTES_OF_END)), 0) > 0 || eventEnd(chunk, 0) > 0;
  }

  #append(chunk: Uint8Array): void {
    const before = this.#rest.length;
    const length = before + chunk.length;
    if (length > this.#room.length) {
      const larger = new Uint8Array(2 * length);
      larger.set(this.#rest);
      this.#room = larger;
    }
    this.#room.set(chunk, before);
    this.#rest = this.#room.subarray(0, length);
  }

  /** Reads one event; true if it has nothing but the usage. */
  #event(all: Uint8Array, from: number, end: number): boolean {
    const start = dataStart(all, from, end);
    if (start < 0) return false;
    if (matches(all, start, DONE)) {
      this.isDone = true;
      return false;
    }
    const listener = this.#listener;
    let hasContent = false;
    let isBareUsage = false;
    for (let at = start; at < end; at++) {
      if (all[at] !== QUOTE) continue;
      const key = at + 1;
      // By its first letter almost every string is none of the keys.
      switch (all[key]) {
        case LETTER_C:
        case LETTER_F:
        case LETTER_R:
        case LETTER_T:
          // That an event has content is known by the first; who listens wants to hear of all.
          if ((!hasContent || listener !== undefined) && isContent(all, key, listener)) hasContent = true;
          break;
        case LETTER_E:
          if (matches(all, key, ERROR) && valueAfter(all, key + ERROR.length) === OPEN_BRACE) this.hasError = true;
          break;
        case LETTER_U:
          if (!matches(all, key, USAGE) || valueAfter(all, key + USAGE.length) !== OPEN_BRACE) break;
          isBareUsage = this.#readUsage(all.subarray(start, end));
          break;
      }
    }
    if (hasContent) this.contentEvents++;
    return isBareUsage;
  }

  /** Notes the usage of an event; true if there is nothing else in it. */
  #readUsage(data: Uint8Array): boolean {
    const event = parsed(data);
    this.usage = usageOf(event) ?? this.usage;
    const choices = field(event, "choices");
    return Array.isArray(choices) && choices.length === 0;
  }
}

/** Where the event that starts at `from` ends, blank line included; 0 if it has not ended yet. */
function eventEnd(all: Uint8Array, from: number): number {
  for (let at = all.indexOf(LINE_FEED, from); at >= 0; at = all.indexOf(LINE_FEED, at + 1)) {
    if (all[at + 1] === LINE_FEED) return at + 2;
    if (all[at + 1] === CARRIAGE_RETURN && all[at + 2] === LINE_FEED) return at + 3;
  }
  return 0;
}

/** Where the event's data begins, or -1 if it has none: comments keep a connection alive. */
function dataStart(all: Uint8Array, from: number, end: number): number {
  let line = from;
  while (line < end) {
    if (matches(all, line, DATA)) {
      const start = line + DATA.length;
      return all[start] === SPACE ? start + 1 : start;
    }
    const next = all.indexOf(LINE_FEED, line);
    if (next < 0) return -1;
    line = next + 1;
  }
  return -1;
}

/** Whether an event whose blank line has not come has all of its data. */
function lacksOnlyItsEnd(rest: Uint8Array): boolean {
  const start = dataStart(rest, 0, rest.length);
  return start >= 0 && (matches(rest, start, DONE) || parsed(rest.subarray(start)) !== undefined);
}

function withoutLineEnd(event: Uint8Array): Uint8Array {
  let { length } = event;
  while (event[length - 1] === LINE_FEED || event[length - 1] === CARRIAGE_RETURN) length--;
  return event.subarray(0, length);
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}

/** The JSON of one event; undefined if it is none, which is for the client to complain about. */
function parsed(event: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(event));
  } catch {
    return undefined;
  }
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
