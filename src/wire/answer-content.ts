/**
 * Where an answer of an OpenAI-compatible server says something, found without parsing it. A key inside a JSON string cannot be
 * mistaken for one: its quotes are escaped there.
 */

const SPACE = 0x20;
const QUOTE = 0x22;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Keys of what is said: in chats, in completions, in the thoughts of engines that show them, in calls of tools. */
export type ContentKey = "content" | "text" | "reasoning_content" | "reasoning" | "tool_calls" | "function_call";

/** Told of everything that an answer says, in its order. */
export interface ContentListener {
  /** What is said begins at this byte, behind the quote or bracket that opens it. */
  said(key: ContentKey, bytes: Uint8Array, from: number): void;
}

interface Content {
  readonly key: ContentKey;
  readonly bytes: Uint8Array;
  /** How a value begins, and what follows at once if there is nothing in it. */
  readonly opening: number;
  readonly closing: number;
}

const CONTENTS: readonly Content[] = [
  content("content", QUOTE, QUOTE),
  content("text", QUOTE, QUOTE),
  content("reasoning_content", QUOTE, QUOTE),
  content("reasoning", QUOTE, QUOTE),
  content("tool_calls", OPEN_BRACKET, CLOSE_BRACKET),
  content("function_call", OPEN_BRACE, CLOSE_BRACE),
];

/** Whether the string that begins at this byte is a key with content; the listener is told of it. */
export function isContent(all: Uint8Array, key: number, listener: ContentListener | undefined): boolean {
  for (const known of CONTENTS) {
    if (!matches(all, key, known.bytes)) continue;
    const value = valueStart(all, key + known.bytes.length);
    if (value < 0 || all[value] !== known.opening || all[value + 1] === known.closing) return false;
    listener?.said(known.key, all, value + 1);
    return true;
  }
  return false;
}

/** Tells of all that an answer in one piece says. */
export function tellContent(answer: Uint8Array, listener: ContentListener): void {
  for (let at = 0; at < answer.length; at++) if (answer[at] === QUOTE) isContent(answer, at + 1, listener);
}

/** The byte a key's value begins with, or -1 if what was found is no key. */
export function valueAfter(all: Uint8Array, at: number): number {
  const start = valueStart(all, at);
  return start < 0 ? -1 : all[start];
}

export function matches(all: Uint8Array, at: number, wanted: Uint8Array): boolean {
  for (let i = 0; i < wanted.length; i++) if (all[at + i] !== wanted[i]) return false;
  return true;
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

function content(key: ContentKey, opening: number, closing: number): Content {
  return { key, bytes: new TextEncoder().encode(key), opening, closing };
}
