import type { ContentKey, ContentListener } from "./answer-content.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const FIRST_ROOM = 4096;
/** Up to here a loop copies faster than a call. */
const SHORT_BYTES = 32;

const KEYS: Readonly<Record<"chat" | "completion", ContentKey>> = { chat: "content", completion: "text" };

/**
 * Gathers the text of an answer, streamed or whole, without parsing it: pieces of JSON strings joined are the JSON string of the whole,
 * and that is how the next turn sends it again.
 */
export class AnswerText implements ContentListener {
  /** Whether anything else was said beside the text: thoughts, calls of tools. */
  isMoreThanText = false;
  readonly #key: ContentKey;
  #bytes: Uint8Array = new Uint8Array(FIRST_ROOM);
  #length = 0;

  constructor(kind: "chat" | "completion") {
    this.#key = KEYS[kind];
  }

  said(key: ContentKey, bytes: Uint8Array, from: number): void {
    if (key === this.#key) this.#append(bytes, from, closingQuote(bytes, from));
    else this.isMoreThanText = true;
  }

  /** Bytes of it, as it stands between the quotes of JSON. */
  get length(): number {
    return this.#length;
  }

  /** All of it, as it stands between the quotes of JSON. */
  toString(): string {
    return Buffer.from(this.#bytes.buffer, 0, this.#length).toString("utf8");
  }

  /** All of it as text; undefined if what stood between quotes was not JSON. */
  read(): string | undefined {
    try {
      return JSON.parse(`"${this.toString()}"`) as string;
    } catch {
      return undefined;
    }
  }

  #append(bytes: Uint8Array, from: number, end: number): void {
    const before = this.#length;
    const length = before + end - from;
    if (length > this.#bytes.length) {
      const larger = new Uint8Array(2 * length);
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    const all = this.#bytes;
    if (end - from > SHORT_BYTES) all.set(bytes.subarray(from, end), before);
    else for (let at = from; at < end; at++) all[before + at - from] = bytes[at];
    this.#length = length;
  }
}

function closingQuote(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return Math.min(at, bytes.length);
}
