import { Template } from "@huggingface/jinja";
import { BoundedCache } from "../bounded-cache.ts";
import { type Locality, type Node, localityOf } from "./locality.ts";

type Json = Readonly<Record<string, unknown>>;

/** A message for a template, and what is the same only for equal messages. */
export interface WritableMessage {
  /** A short text and one that may be long: its role and content, where it has no more. */
  readonly kind: string;
  readonly text: string;
  readonly message: Json;
}

/** Stands between messages while a chat is written. No text that has it in it is written this way. */
const MARK = "\u0000\ud800warmpath\ud800\u0000";
const MARKED = -1;
/** Leaving out fewer messages than this saves nothing. */
const FEWEST_LEFT_OUT = 4;
const DEFAULT_CACHE_CHARS = 16 * 1024 * 1024;

/**
 * Writes chats with a template that writes each message by itself: what it wrote for a message between the same neighbours is
 * kept, and the template sees only the head of the chat and what is new. See locality.ts for which templates these are.
 */
export class MessageWriter {
  readonly #template: Template;
  readonly #head: number;
  readonly #ids: BoundedCache<number>;
  readonly #pieces: BoundedCache<string>;
  #lastId = 0;

  private constructor(template: Template, { loopAt, head }: Locality, maxChars: number) {
    const statements = template.parsed.body as Node[];
    const mark: Node = { type: "StringLiteral", value: MARK };
    (statements[loopAt]["body"] as Node[]).unshift(mark);
    statements.splice(loopAt + 1, 0, mark);
    this.#template = template;
    this.#head = head;
    this.#ids = new BoundedCache(maxChars);
    this.#pieces = new BoundedCache(maxChars);
  }

  /** A writer for a template, if it is one that writes each message by itself. */
  static for(source: string, maxChars: number = DEFAULT_CACHE_CHARS): MessageWriter | undefined {
    const template = new Template(source);
    const locality = localityOf(template.parsed.body);
    return locality === undefined ? undefined : new MessageWriter(template, locality, maxChars);
  }

  /** The chat as text, or undefined if it has to be written as a whole; throws what the template throws. */
  write(messages: readonly WritableMessage[], context: Json, contextKey: string): string | undefined {
    const ids = [this.#idOf("", contextKey), ...messages.map(({ kind, text }) => this.#idOf(kind, text))];
    if (ids.includes(undefined)) return undefined;
    const start = ids.slice(0, 1 + this.#head).join(",");
    const keyOf = (i: number): string => `${start}|${i & 1}|${ids[i]},${ids[i + 1]},${ids[i + 2]}`;
    const known = this.#knownPieces(messages.length, keyOf);
    const written = this.#writeAround(messages, context, known.length);
    if (written === undefined) return undefined;
    const { before, pieces, after, first, leftOut } = written;
    const headPieces = pieces.slice(0, Math.max(0, this.#head - 1 - first));
    const newFrom = this.#head - 1 + known.length;
    const newPieces = pieces.slice(Math.max(0, newFrom - first - leftOut));
    // The last one may look different when it is last no more.
    for (let i = newFrom; i < messages.length - 1; i++) this.#keep(keyOf(i), newPieces[i - newFrom]);
    return [before, ...headPieces, ...known, ...newPieces, after].join("");
  }

  /** What is kept of the messages from the last of the head on, up to the first that is not. */
  #knownPieces(count: number, keyOf: (i: number) => string): string[] {
    const known: string[] = [];
    for (let i = this.#head - 1; i < count - 1; i++) {
      const piece = this.#pieces.get(keyOf(i));
      if (piece === undefined) break;
      known.push(piece);
    }
    return known;
  }

  /** Writes the head and what follows the known messages, with one of these before it as its neighbour. */
  #writeAround(
    messages: readonly WritableMessage[],
    context: Json,
    known: number,
  ): { before: string; pieces: string[]; after: string; first: number; leftOut: number } | undefined {
    const spare = Math.max(0, known - 2);
    // An even number, so that messages which must take turns still do.
    const leftOut = spare < FEWEST_LEFT_OUT ? 0 : spare - (spare % 2);
    const kept = [...messages.slice(0, this.#head), ...messages.slice(this.#head + leftOut)];
    const text = this.#template.render({ ...context, messages: kept.map(({ message }) => message) });
    const parts = text.split(MARK);
    const pieces = parts.slice(1, -1);
    // The template may have taken messages off the front, but no more than the head.
    const first = kept.length - pieces.length;
    if (parts.length < 2 || first < 0 || first >= this.#head) return undefined;
    return { before: parts[0], pieces, after: parts[parts.length - 1], first, leftOut };
  }

  /** A short text in place of a message, so that keys of pieces are short; undefined if it has the mark in it. */
  #idOf(kind: string, text: string): string | undefined {
    const kindId = this.#numberOf(kind);
    const textId = this.#numberOf(text);
    return kindId === MARKED || textId === MARKED ? undefined : `${kindId}/${textId}`;
  }

  #numberOf(text: string): number {
    const known = this.#ids.get(text);
    if (known !== undefined) return known;
    const id = text.includes(MARK) ? MARKED : ++this.#lastId;
    this.#ids.set(text, id);
    return id;
  }

  #keep(key: string, piece: string): void {
    // A slice would keep the whole text alive.
    this.#pieces.set(key, structuredClone(piece), piece.length);
  }
}
