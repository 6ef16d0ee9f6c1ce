/**
 * Tokens of a text by its passages, so that text seen before is looked up instead of tokenized.
 *
 * Added tokens, which chat templates put around every message, cut a text into parts that are tokenized independently. Long
 * parts are cut further where the model's pattern allows it, counted from the start of the part. A conversation that grows by a
 * turn is thereby the same passages as before and a few new ones, whatever its template does; a document that many
 * conversations share is tokenized once. Equal to tokenizing the whole text at once, always.
 */
import type { ByteBpe } from "./bpe/byte-bpe.ts";
import { BoundedCache } from "./bounded-cache.ts";

/** A text as far as its tokens are known. */
export interface Outline {
  /** Tokens in order, with undefined in place of those that are missing. */
  readonly parts: readonly (Uint32Array | undefined)[];
  /** The passages that are missing, in order. */
  readonly missing: readonly string[];
  /** Characters of the missing passages. */
  readonly missingChars: number;
}

/** Shorter ones are tokenized faster than found. */
const SHORTEST_KEPT = 48;
/** Where a part is cut, if it can be: the longer, the more is tokenized again when a text grows at its end. */
const PASSAGE_CHARS = 2048;
const BLANK = 0x20;
/** With its tokens a passage takes two to three bytes a character. */
const DEFAULT_CACHE_CHARS = 32 * 1024 * 1024;

export class PassageTokenizer {
  readonly #bpe: ByteBpe;
  readonly #cache: BoundedCache<Uint32Array>;
  readonly #added = new Map<number, Uint32Array>();

  constructor(bpe: ByteBpe, cacheChars: number = DEFAULT_CACHE_CHARS) {
    this.#bpe = bpe;
    this.#cache = new BoundedCache(cacheChars);
  }

  /** What is known of a text; what is not can be tokenized anywhere, and `complete` puts it in. */
  outline(text: string): Outline {
    // There are never more of them than characters.
    return this.outlineWithin(Number.POSITIVE_INFINITY, text) as Outline;
  }

  /** The same; undefined for a text with more scraps, which are tokenized at once, than these. */
  outlineWithin(mostScraps: number, text: string): Outline | undefined {
    let scraps = 0;
    const parts: (Uint32Array | undefined)[] = [];
    const missing: string[] = [];
    let missingChars = 0;
    for (const { start, end, token } of this.#bpe.stretches(text)) {
      if (token >= 0) {
        parts.push(this.#addedToken(token));
        continue;
      }
      for (let from = start; from < end;) {
        const to = this.#bpe.cutsAfterWords ? passageEnd(text, from, end) : end;
        const passage = text.slice(from, to);
        const isScrap = to - from < SHORTEST_KEPT;
        if (isScrap && ++scraps > mostScraps) return undefined;
        const known = isScrap ? this.#bpe.encodePlain(passage) : this.#cache.get(passage);
        parts.push(known);
        if (known === undefined) {
          // A slice is slow to read and keeps the whole text alive that it was cut from; a copy is on its own.
          missing.push(structuredClone(passage));
          missingChars += passage.length;
        }
        from = to;
      }
    }
    return { parts, missing, missingChars };
  }

  /** The tokens of the missing passages, made here and now. */
  encodeMissing(outline: Outline): Uint32Array[] {
    return outline.missing.map((passage) => this.#bpe.encodePlain(passage));
  }

  /** All tokens of the text, with those of the missing passages in order; remembers these. */
  complete({ parts, missing }: Outline, tokens: readonly Uint32Array[]): Uint32Array {
    let next = 0;
    const whole = parts.map((part) => part ?? tokens[next++]);
    missing.forEach((passage, i) => this.#cache.set(passage, tokens[i]));
    return joinTokens(whole);
  }

  /** The tokens of a text. */
  encode(text: string): Uint32Array {
    const outline = this.outline(text);
    return this.complete(outline, this.encodeMissing(outline));
  }

  #addedToken(token: number): Uint32Array {
    let tokens = this.#added.get(token);
    if (tokens === undefined) {
      tokens = Uint32Array.of(token);
      this.#added.set(token, tokens);
    }
    return tokens;
  }
}

/** Where the passage that begins at `from` ends: after a word, or where the part ends. Nothing behind that is looked at. */
export function passageEnd(text: Pick<string, "charCodeAt">, from: number, end: number): number {
  let isAfterLetter = false;
  for (let at = from + PASSAGE_CHARS; at < end; at++) {
    const unit = text.charCodeAt(at);
    if (unit === BLANK && isAfterLetter) return at;
    // In lower case or not, one bit apart.
    isAfterLetter = (unit | 0x20) >= 0x61 && (unit | 0x20) <= 0x7a;
  }
  return end;
}

/** Several lists of tokens as one. */
export function joinTokens(parts: readonly Uint32Array[]): Uint32Array {
  const tokens = new Uint32Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    tokens.set(part, at);
    at += part.length;
  }
  return tokens;
}
