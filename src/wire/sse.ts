/**
 * Server-sent events, as OpenAI-compatible servers stream them.
 *
 * A router forwards the bytes as they are and needs to know little of them: that content came, that the stream is whole,
 * and what the usage says. So the scanner looks for a handful of keys in the bytes and parses only the event with the
 * usage. A key inside a JSON string cannot be mistaken for one: its quotes are escaped there.
 */
import { type TokenUsage, usageOf } from "./openai-usage.ts";

/** Ends every stream that is whole. */
export const SSE_DONE = "data: [DONE]\n\n";

/** One event that carries this JSON text. */
export function sseEvent(json: string): string {
  return `data: ${json}\n\n`;
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Keys whose non-empty string is content: chat, text completions, and the reasoning of engines that show it. */
const CONTENT_KEYS: readonly Uint8Array[] = ["content", "text", "reasoning_content", "reasoning"].map(bytes);
const TOOL_CALLS: Uint8Array = bytes("tool_calls");
const USAGE: Uint8Array = bytes("usage");
const ERROR: Uint8Array = bytes("error");
const DATA: Uint8Array = bytes("data:");
const DONE: Uint8Array = bytes("[DONE]");

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
  #rest: Uint8Array = new Uint8Array(0);

  /** True if the last chunk ended inside an event. */
  get isInsideEvent(): boolean {
    return this.#rest.length > 0;
  }

  /** Takes the next bytes and returns how many events with content were completed by them. */
  push(chunk: Uint8Array): number {
    const before = this.contentEvents;
    const all = this.#rest.length === 0 ? chunk : joined(this.#rest, chunk);
    let from = 0;
    for (let end = eventEnd(all, from); end > 0; end = eventEnd(all, from)) {
      this.#event(all, from, end);
      from = end;
    }
    // A copy, because the chunk's memory belongs to whoever reads the socket.
    this.#rest = from === all.length ? EMPTY : all.slice(from);
    return this.contentEvents - before;
  }

  #event(all: Uint8Array, from: number, end: number): void {
    const start = dataStart(all, from, end);
    if (start < 0) return;
    if (matches(all, start, DONE)) {
      this.isDone = true;
      return;
    }
    let hasContent = false;
    for (let at = start; at < end; at++) {
      if (all[at] !== QUOTE) continue;
      const key = at + 1;
      if (!hasContent && isContent(all, key)) hasContent = true;
      else if (matches(all, key, ERROR) && valueAfter(all, key + ERROR.length) === OPEN_BRACE) this.hasError = true;
      else if (matches(all, key, USAGE) && valueAfter(all, key + USAGE.length) === OPEN_BRACE) {
        this.usage = usageOf(parsed(all.subarray(start, end))) ?? this.usage;
      }
    }
    if (hasContent) this.contentEvents++;
  }
}

const EMPTY: Uint8Array = new Uint8Array(0);

/** Whether a key at this place holds content: a string that is not empty, or calls of tools. */
function isContent(all: Uint8Array, key: number): boolean {
  for (const name of CONTENT_KEYS) {
    if (!matches(all, key, name)) continue;
    const value = valueStart(all, key + name.length);
    return value > 0 && all[value] === QUOTE && all[value + 1] !== QUOTE;
  }
  if (!matches(all, key, TOOL_CALLS)) return false;
  const value = valueStart(all, key + TOOL_CALLS.length);
  return value > 0 && all[value] === OPEN_BRACKET && all[value + 1] !== CLOSE_BRACKET;
}

/** The byte a key's value begins with, or -1 if what was found is no key. */
function valueAfter(all: Uint8Array, at: number): number {
  const start = valueStart(all, at);
  return start < 0 ? -1 : all[start];
}

function valueStart(all: Uint8Array, at: number): number {
  if (all[at] !== QUOTE) return -1;
  let next = at + 1;
  while (all[next] === SPACE) next++;
  if (all[next] !== COLON) return -1;
  next++;
  while (all[next] === SPACE) next++;
  return next;
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

function matches(all: Uint8Array, at: number, wanted: Uint8Array): boolean {
  for (let i = 0; i < wanted.length; i++) if (all[at + i] !== wanted[i]) return false;
  return true;
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
