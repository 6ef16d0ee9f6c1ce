const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const FIRST_ROOM = 4096;

/** Keys of what is said, in chats and in completions; reasoning is not part of the conversation. */
const KEYS: Readonly<Record<"chat" | "completion", string>> = { chat: '"content":', completion: '"text":' };

/**
 * Gathers the text of an answer, streamed or whole, without parsing it: pieces of JSON strings joined are the JSON string of the whole,
 * and that is how the next turn sends it again. A key inside a string is not mistaken for one: its quotes are escaped there.
 */
export class AnswerText {
  readonly #key: string;
  #bytes: Buffer = Buffer.allocUnsafe(FIRST_ROOM);
  #length = 0;

  constructor(kind: "chat" | "completion") {
    this.#key = KEYS[kind];
  }

  /** Takes the text out of whole events, or out of a whole answer; `text` are their characters where somebody has them. */
  add(events: Uint8Array, text: string = charactersOf(events)): void {
    const bytes = bufferOf(events);
    const key = this.#key;
    for (let at = text.indexOf(key); at >= 0; at = text.indexOf(key, at)) {
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

  /** All of it as text; undefined if what stood between quotes was not JSON. */
  read(): string | undefined {
    try {
      return JSON.parse(`"${this.toString()}"`) as string;
    } catch {
      return undefined;
    }
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

/** What a model says beside its text, by the first byte of a value that says something. */
const BESIDE_TEXT: readonly (readonly [key: string, opening: number, empty: number])[] = [
  ['"reasoning_content":', QUOTE, QUOTE],
  ['"reasoning":', QUOTE, QUOTE],
  ['"tool_calls":', OPEN_BRACKET, CLOSE_BRACKET],
  ['"function_call":', OPEN_BRACE, -1],
];

/** A character for every byte: looking for a key in a string takes a fraction of the time it takes in a buffer. */
export function charactersOf(events: Uint8Array): string {
  return bufferOf(events).toString("latin1");
}

/** Whether events or a whole answer, a character for every byte, have thoughts or calls of tools in them. */
export function saysMoreThanText(text: string): boolean {
  // What all the keys have in them is looked for first: nearly always there is none.
  if (!text.includes("reasoning") && !text.includes("_call")) return false;
  return BESIDE_TEXT.some(([key, opening, empty]) => {
    for (let at = text.indexOf(key); at >= 0; at = text.indexOf(key, at)) {
      at += key.length;
      while (text.charCodeAt(at) === SPACE) at++;
      if (text.charCodeAt(at) === opening && text.charCodeAt(at + 1) !== empty) return true;
    }
    return false;
  });
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

function closingQuote(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return Math.min(at, bytes.length);
}
