import { WHITE_SPACE } from "./character-classes.ts";
import type { Splitter } from "./splitter.ts";

/** The pattern of GPT-2, which `ByteLevel` applies by itself where a tokenizer says so. */
export const GPT2_PATTERN = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/** Splits by any other pattern; what it does not match is a piece of its own. */
export class RegexSplitter implements Splitter {
  readonly cutsAfterWords = false;
  readonly #pattern: RegExp;

  constructor(pattern: RegExp) {
    this.#pattern = pattern;
  }

  pieceEnd(text: string, from: number, end: number): number {
    const pattern = this.#pattern;
    const within = end === text.length ? text : text.slice(0, end);
    pattern.lastIndex = from;
    let match = pattern.exec(within);
    while (match !== null && match[0] === "") {
      pattern.lastIndex = match.index + 1;
      match = pattern.exec(within);
    }
    if (match === null) return end;
    return match.index > from ? match.index : from + match[0].length;
  }
}

/** Splits by the first, and what that gives by the second. */
export class NestedSplitter implements Splitter {
  readonly cutsAfterWords = false;
  readonly #outer: Splitter;
  readonly #inner: Splitter;
  /** The outer piece that inner ones are being taken from, and how far that has come. */
  #text = "";
  #end = -1;
  #at = -1;

  constructor(outer: Splitter, inner: Splitter) {
    this.#outer = outer;
    this.#inner = inner;
  }

  pieceEnd(text: string, from: number, end: number): number {
    const goesOn = this.#text === text && this.#at === from && from < this.#end;
    if (!goesOn) {
      this.#text = text;
      this.#end = this.#outer.pieceEnd(text, from, end);
    }
    this.#at = this.#inner.pieceEnd(text, from, this.#end);
    return this.#at;
  }
}

/** A quantifier that gives nothing back, which JavaScript lacks. */
const POSSESSIVE = /^(?:[?*+]|\{\d*,?\d*\})\+/;

/**
 * A pattern of Rust's tokenizers (Oniguruma) as JavaScript's: `\s` is Unicode's, and `(?i:…)`, which Node 20 lacks, is
 * spelt out. Undefined if JavaScript has no such pattern.
 */
export function translatePattern(source: string): RegExp | undefined {
  if (/\(\?[>#]|\\[GAzZhHKRX]/.test(source)) return undefined;
  let translated = "";
  let isInClass = false;
  const groups: boolean[] = [];
  for (let i = 0; i < source.length; i++) {
    const character = source[i];
    const folds = groups.at(-1) ?? false;
    if (character === "\\") {
      const escaped = source[++i];
      if (escaped === "s") translated += isInClass ? WHITE_SPACE : `[${WHITE_SPACE}]`;
      else if (escaped === "S" && !isInClass) translated += `[^${WHITE_SPACE}]`;
      else if (/[SwWdDbB]/.test(escaped ?? "S")) return undefined;
      else if (escaped === "p" || escaped === "P" || !/[^\w]/.test(escaped)) translated += `\\${escaped}`;
      else translated += /[\^$\\.*+?()[\]{}|/-]/.test(escaped) ? `\\${escaped}` : escaped;
    } else if (isInClass) {
      if (character === "[" || (character === "&" && source[i + 1] === "&")) return undefined;
      if (folds && /[a-z]/i.test(character)) return undefined;
      isInClass = character !== "]";
      translated += character;
    } else if (character === "[") {
      isInClass = true;
      translated += character;
    } else if (character === "(") {
      const folding = source.startsWith("(?i:", i);
      groups.push(folding || folds);
      translated += folding ? "(?:" : "(";
      if (folding) i += 3;
    } else if (character === ")") {
      groups.pop();
      translated += character;
    } else if (POSSESSIVE.test(source.slice(i))) return undefined;
    else if (folds && /[a-z]/i.test(character)) translated += eitherCase(character);
    else translated += character;
  }
  try {
    return new RegExp(translated, "gu");
  } catch {
    return undefined;
  }
}

/** A letter in both cases; the long s is an s, and the Kelvin sign a k, to a case-insensitive pattern. */
function eitherCase(letter: string): string {
  const lower = letter.toLowerCase();
  const others = lower === "s" ? "\\u017f" : lower === "k" ? "\\u212a" : "";
  return `[${lower}${lower.toUpperCase()}${others}]`;
}
