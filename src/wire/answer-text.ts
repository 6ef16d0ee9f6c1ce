const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const FIRST_ROOM = 4096;

/** Keys of what is said, in chats and in completions; reasoning is not part of the conversation. */
const KEYS: Readonly<Record<"chat" | "completion", string>> = { chat: '"content":', completion: '"text":' };

/**
 * Gathers the text of a streamed answer without parsing it: pieces of JSON strings joined are the JSON string of the whole,
 * and that is how the next turn sends it again. A key inside a string is not mistaken for one: its quotes are escaped there.
 */
export class AnswerText {
  readonly #key: string;
  #bytes: Buffer = Buffer.allocUnsafe(FIRST_ROOM);
  #length = 0;

  constructor(kind: "chat" | "completion") {
    this.#key = KEYS[kind];
  }

  /** Takes the text out of whole events. */
  add(events: Uint8Array): void {
    const bytes = Buffer.isBuffer(events) ? events : Buffer.from(events.buffer, events.byteOffset, events.length);
    const key = this.#key;
    for (let at = bytes.indexOf(key); at >= 0; at = bytes.indexOf(key, at)) {
      at += key.length;
      while (bytes[at] === SPACE) at++;
      if (bytes[at] !== QUOTE) continue;
      const end = closingQuote(bytes, at + 1);
      this.#append(bytes, at + 1, end);
      at = end + 1;
    }
  }

  /** All of it, as it stands between the quotes of JSON. */
  toString(): string {
    return this.#bytes.toString("utf8", 0, this.#length);
  }

  #append(bytes: Buffer, from: number, end: number): void {
    const length = this.#length + end - from;
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(2 * length);
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    bytes.copy(this.#bytes, this.#length, from, end);
    this.#length = length;
  }
}

function closingQuote(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return Math.min(at, bytes.length);
}
