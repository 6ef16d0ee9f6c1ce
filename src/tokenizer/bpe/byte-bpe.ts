import { AddedTokens, type Stretch } from "./added-tokens.ts";
import { BYTE_CHARACTERS } from "./byte-alphabet.ts";
import type { BpeDefinition } from "./definition.ts";
import { MergeTable } from "./merge-table.ts";
import { Merger } from "./merger.ts";
import { normalized } from "./normal-form.ts";
import type { Splitter } from "./splitter.ts";
import { createSplitter } from "./splitters.ts";
import { LONGEST_CACHED, WordCache, pieceHash } from "./word-cache.ts";

/** Distinct pieces kept; about 6 MB. The words of a language in use are fewer. */
const DEFAULT_CACHED_WORDS = 1 << 17;
/** UTF-8 bytes of one UTF-16 code unit, at most. */
const MAX_BYTES_PER_UNIT = 3;
/** Room for tokens to begin with, and what is kept of it after a text that needed more. */
const LEAST_ROOM = 4096;
const MOST_KEPT = 1 << 20;
/** Nothing below is changed by composing, nor composes with what stands before it. */
const MAY_COMPOSE = /[\u0300-\uffff]/;

/**
 * Byte-level BPE as engines do it: added tokens are cut out, the rest is normalized, split into pieces by the model's pattern,
 * and each piece's UTF-8 bytes are merged by rank.
 *
 * @example
 * const bpe = new ByteBpe(readTokenizerJson(JSON.parse(text)));
 * const tokens = bpe.encode("Hello, world");
 */
export class ByteBpe {
  readonly definition: BpeDefinition;
  readonly #rawTokens: AddedTokens;
  readonly #normalizedTokens: AddedTokens;
  readonly #splitter: Splitter;
  readonly #merger: Merger;
  readonly #words: WordCache;
  /** Length of the longest of the whole words: no longer piece is one. */
  readonly #longestWord: number;
  #out: Uint32Array = new Uint32Array(LEAST_ROOM);
  #count = 0;

  constructor(definition: BpeDefinition, cachedWords: number = DEFAULT_CACHED_WORDS) {
    this.definition = definition;
    const isNormalizing = definition.normalForms.length > 0;
    const { addedTokens } = definition;
    // Without a normalizer all text is as it stands, and all tokens are looked for at once.
    this.#rawTokens = new AddedTokens(addedTokens.filter((token) => !(token.isNormalized && isNormalizing)));
    this.#normalizedTokens = new AddedTokens(
      addedTokens
        .filter((token) => token.isNormalized && isNormalizing)
        .map((token) => ({ ...token, content: this.#normalized(token.content) })),
    );
    this.#splitter = createSplitter(definition.patterns);
    this.#merger = new Merger(new MergeTable(definition.merges));
    this.#words = new WordCache(cachedWords);
    let longestWord = 0;
    for (const word of definition.wholeWords?.keys() ?? []) longestWord = Math.max(longestWord, word.length);
    this.#longestWord = longestWord;
  }

  /** Whether plain text may be cut between a letter and a space, and tokenized in parts. */
  get cutsAfterWords(): boolean {
    return this.#splitter.cutsAfterWords && !this.definition.addedTokens.some((token) => token.isNormalized);
  }

  /** The text as added tokens and the plain text between them, which are tokenized independently of each other. */
  stretches(text: string): Stretch[] {
    return this.#rawTokens.stretches(text);
  }

  /** The tokens of a text. */
  encode(text: string): Uint32Array {
    this.#count = 0;
    for (const { start, end, token } of this.stretches(text)) {
      if (token >= 0) this.#add(token);
      else this.#addPlain(text.slice(start, end));
    }
    return this.#taken();
  }

  /** The tokens of text in which no added token is to be found, as between two of them. */
  encodePlain(text: string): Uint32Array {
    this.#count = 0;
    this.#addPlain(text);
    return this.#taken();
  }

  #taken(): Uint32Array {
    const tokens = this.#out.slice(0, this.#count);
    if (this.#out.length > MOST_KEPT) this.#out = new Uint32Array(LEAST_ROOM);
    return tokens;
  }

  #addPlain(plain: string): void {
    const text = this.#normalized(plain);
    for (const { start, end, token } of this.#normalizedTokens.stretches(text)) {
      if (token >= 0) this.#add(token);
      else this.#addPieces(text, start, end);
    }
  }

  #addPieces(text: string, start: number, end: number): void {
    for (let from = start; from < end;) {
      const to = this.#splitter.pieceEnd(text, from, end);
      if (to - from > LONGEST_CACHED) this.#copyMerged(this.#mergePiece(text, from, to));
      else {
        this.#reserve(LONGEST_CACHED * MAX_BYTES_PER_UNIT);
        const hash = pieceHash(text, from, to);
        const known = this.#words.read(text, from, to, hash, this.#out, this.#count);
        if (known >= 0) this.#count += known;
        else {
          const count = this.#mergePiece(text, from, to);
          this.#words.write(text, from, to, hash, this.#merger.symbols, count);
          this.#copyMerged(count);
        }
      }
      from = to;
    }
  }

  /** Leaves a piece's tokens in the merger and returns how many they are. */
  #mergePiece(text: string, from: number, to: number): number {
    const { byteTokens, wholeWords } = this.definition;
    const symbols = this.#merger.room(
      to - from > LONGEST_CACHED ? utf8Length(text, from, to) : LONGEST_CACHED * MAX_BYTES_PER_UNIT,
    );
    const bytes = writeUtf8(text, from, to, symbols);
    if (wholeWords !== undefined && bytes <= this.#longestWord) {
      let word = "";
      for (let i = 0; i < bytes; i++) word += BYTE_CHARACTERS[symbols[i]];
      const token = wholeWords.get(word);
      if (token !== undefined) {
        symbols[0] = token;
        return 1;
      }
    }
    for (let i = 0; i < bytes; i++) symbols[i] = byteTokens[symbols[i]];
    return this.#merger.merge(bytes);
  }

  #copyMerged(count: number): void {
    this.#reserve(count);
    const { symbols } = this.#merger;
    for (let i = 0; i < count; i++) this.#out[this.#count++] = symbols[i];
  }

  #add(token: number): void {
    this.#reserve(1);
    this.#out[this.#count++] = token;
  }

  #reserve(more: number): void {
    const needed = this.#count + more;
    if (needed <= this.#out.length) return;
    const larger = new Uint32Array(needed * 2);
    larger.set(this.#out.subarray(0, this.#count));
    this.#out = larger;
  }

  #normalized(text: string): string {
    return this.definition.normalForms.reduce(
      (normal, form) => (form === "NFC" && !MAY_COMPOSE.test(normal) ? normal : normalized(normal, form)),
      text,
    );
  }
}

/** How many bytes `writeUtf8` writes. */
function utf8Length(text: string, from: number, to: number): number {
  let count = 0;
  for (let i = from; i < to; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) count++;
    else if (unit < 0x800) count += 2;
    // Half a pair takes as much as any other; both halves together take one more.
    else if (unit < 0xd800 || unit >= 0xdc00 || i + 1 === to || (text.charCodeAt(i + 1) & 0xfc00) !== 0xdc00)
      count += 3;
    else {
      count += 4;
      i++;
    }
  }
  return count;
}

/** Writes the UTF-8 bytes of a stretch of text, one a number, and returns how many; half a pair becomes U+FFFD. */
function writeUtf8(text: string, from: number, to: number, out: Int32Array): number {
  let count = 0;
  for (let i = from; i < to; i++) {
    let point = text.charCodeAt(i);
    if (point < 0x80) {
      out[count++] = point;
      continue;
    }
    if (point >= 0xd800 && point < 0xe000) {
      const whole = text.codePointAt(i) ?? point;
      const isPair = whole > 0xffff && i + 1 < to;
      point = isPair ? whole : 0xfffd;
      if (isPair) i++;
    }
    if (point < 0x800) out[count++] = 0xc0 | (point >> 6);
    else {
      if (point < 0x10000) out[count++] = 0xe0 | (point >> 12);
      else {
        out[count++] = 0xf0 | (point >> 18);
        out[count++] = 0x80 | ((point >> 12) & 0x3f);
      }
      out[count++] = 0x80 | ((point >> 6) & 0x3f);
    }
    out[count++] = 0x80 | (point & 0x3f);
  }
  return count;
}
