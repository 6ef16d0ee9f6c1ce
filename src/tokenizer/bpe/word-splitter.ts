/**
 * The pattern that the models of the Llama 3 and Qwen families share, by hand:
 *
 *   (?i:'s|'t|'re|'ve|'m|'ll|'d) | [^\r\n\p{L}\p{N}]?\p{L}+ | \p{N}{1,n} | ?[^\s\p{L}\p{N}]+[\r\n]* | \s*[\r\n]+ | \s+(?!\S) | \s+
 *
 * with n = 3 for Llama 3 and n = 1 for Qwen. A table of character classes decides each step, which is several times as fast as
 * a regular expression with Unicode properties.
 */
import { LETTER, LINE_END, NUMBER, OTHER, SPACE, SURROGATE, pointClass, unitClasses } from "./character-classes.ts";
import type { Splitter } from "./splitter.ts";

const APOSTROPHE = 0x27;
const BLANK = 0x20;

/** The source of the pattern for so many digits a number, as tokenizer.json has it. */
export function wordPattern(digits: "\\p{N}" | "\\p{N}{1,3}"): string {
  return (
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" +
    `${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`
  );
}

/** Splits as `wordPattern` does. */
export class WordSplitter implements Splitter {
  readonly cutsAfterWords = true;
  readonly #classes: Uint8Array = unitClasses();
  readonly #maxDigits: number;

  constructor(maxDigits: number) {
    this.#maxDigits = maxDigits;
  }

  pieceEnd(text: string, from: number, end: number): number {
    const unit = text.charCodeAt(from);
    if (unit === APOSTROPHE) {
      const length = contractionLength(text, from + 1, end);
      if (length > 0) return from + 1 + length;
    }
    const kind = this.#classAt(text, from, unit);
    if (kind === LETTER) return this.#lettersEnd(text, from, end);
    if (kind === NUMBER) return this.#digitsEnd(text, from, end);
    const isPair = this.#classes[unit] === SURROGATE && (text.codePointAt(from) ?? 0) > 0xffff;
    const next = from + (isPair ? 2 : 1);
    if (kind !== LINE_END && next < end) {
      const afterwards = this.#classAt(text, next, text.charCodeAt(next));
      if (afterwards === LETTER) return this.#lettersEnd(text, next, end);
      if (unit === BLANK && afterwards === OTHER) return this.#signsEnd(text, next, end);
    }
    return kind === OTHER ? this.#signsEnd(text, from, end) : this.#spaceEnd(text, from, end);
  }

  #classAt(text: string, at: number, unit: number): number {
    const kind = this.#classes[unit];
    return kind === SURROGATE ? pointClass(text.codePointAt(at) ?? unit) : kind;
  }

  #runEnd(text: string, from: number, end: number, wanted: number): number {
    const classes = this.#classes;
    let at = from;
    while (at < end) {
      const kind = classes[text.charCodeAt(at)];
      if (kind === wanted) at++;
      else if (kind === SURROGATE) {
        const point = text.codePointAt(at) ?? 0;
        if (pointClass(point) !== wanted) break;
        at += point > 0xffff ? 2 : 1;
      } else break;
    }
    return at;
  }

  #lettersEnd(text: string, from: number, end: number): number {
    return this.#runEnd(text, from, end, LETTER);
  }

  #digitsEnd(text: string, from: number, end: number): number {
    let at = from;
    for (let digits = 0; digits < this.#maxDigits && at < end; digits++) {
      const unit = text.charCodeAt(at);
      if (this.#classAt(text, at, unit) !== NUMBER) break;
      at += this.#classes[unit] === SURROGATE ? 2 : 1;
    }
    return at;
  }

  #signsEnd(text: string, from: number, end: number): number {
    let at = this.#runEnd(text, from, end, OTHER);
    while (at < end && this.#classes[text.charCodeAt(at)] === LINE_END) at++;
    return at;
  }

  /** Up to the last line end in a run of white space; without one, up to the blank that belongs to the next word. */
  #spaceEnd(text: string, from: number, end: number): number {
    const classes = this.#classes;
    let at = from;
    let afterLineEnd = -1;
    for (; at < end; at++) {
      const kind = classes[text.charCodeAt(at)];
      if (kind === LINE_END) afterLineEnd = at + 1;
      else if (kind !== SPACE) break;
    }
    if (afterLineEnd >= 0) return afterLineEnd;
    return at === end || at === from + 1 ? at : at - 1;
  }
}

/** Letters of 's, 't, 're, 've, 'm, 'll or 'd after the apostrophe; 0 if it is none of them. */
function contractionLength(text: string, at: number, end: number): number {
  if (at >= end) return 0;
  const first = lowered(text.charCodeAt(at));
  switch (first) {
    case 0x73: // s
    case 0x74: // t
    case 0x6d: // m
    case 0x64: // d
      return 1;
    case 0x72: // re
    case 0x76: // ve
      return at + 1 < end && lowered(text.charCodeAt(at + 1)) === 0x65 ? 2 : 0;
    case 0x6c: // ll
      return at + 1 < end && lowered(text.charCodeAt(at + 1)) === 0x6c ? 2 : 0;
    default:
      return 0;
  }
}

/** ASCII letters in lower case. U+017F, the long s, is an s to the engines' case-insensitive patterns. */
function lowered(unit: number): number {
  if (unit === 0x17f) return 0x73;
  return unit >= 0x41 && unit <= 0x5a ? unit + 32 : unit;
}
