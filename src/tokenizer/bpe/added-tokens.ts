import type { AddedToken } from "./definition.ts";
import { WHITE_SPACE } from "./character-classes.ts";

/** A stretch of text, and the added token it is; -1 for plain text. */
export interface Stretch {
  readonly start: number;
  readonly end: number;
  readonly token: number;
}

/** Finds added tokens in text: the leftmost, and of those that start there the longest. */
export class AddedTokens {
  readonly #tokens: ReadonlyMap<string, AddedToken>;
  readonly #pattern: RegExp | undefined;
  /** What all of them begin with, mostly "<": text is searched for it faster than for any of them. */
  readonly #beginning: string;
  #end = 0;

  constructor(tokens: readonly AddedToken[]) {
    this.#tokens = new Map(tokens.filter(({ content }) => content !== "").map((token) => [token.content, token]));
    const longestFirst = [...this.#tokens.keys()].sort((a, b) => b.length - a.length);
    const beginnings = new Set(longestFirst.map((content) => content.slice(0, 1)));
    this.#beginning = beginnings.size === 1 ? [...beginnings][0] : "";
    // Not in Unicode mode: a token is found wherever its code units are.
    const flags = this.#beginning === "" ? "g" : "y";
    this.#pattern = longestFirst.length === 0 ? undefined : new RegExp(longestFirst.map(escaped).join("|"), flags);
  }

  /** The text as stretches, in order; nothing of it is left out. */
  stretches(text: string): Stretch[] {
    const stretches: Stretch[] = [];
    let done = 0;
    for (let at = this.#next(text, 0); at >= 0; at = this.#next(text, this.#end)) {
      const end = this.#end;
      const token = this.#tokens.get(text.slice(at, end));
      // White space that the token before took along may reach into this one's.
      if (token === undefined || at < done) continue;
      const start = token.stripsLeft ? spaceBefore(text, done, at) : at;
      if (start > done) stretches.push({ start: done, end: start, token: -1 });
      done = token.stripsRight ? spaceAfter(text, end) : end;
      stretches.push({ start, end: done, token: token.id });
    }
    if (done < text.length) stretches.push({ start: done, end: text.length, token: -1 });
    return stretches;
  }

  /** Where the next added token from a place on begins, or -1; where it ends is left in `#end`. */
  #next(text: string, from: number): number {
    const pattern = this.#pattern;
    if (pattern === undefined) return -1;
    if (this.#beginning === "") {
      pattern.lastIndex = from;
      const found = pattern.exec(text);
      this.#end = pattern.lastIndex;
      return found?.index ?? -1;
    }
    for (let at = text.indexOf(this.#beginning, from); at >= 0; at = text.indexOf(this.#beginning, at + 1)) {
      pattern.lastIndex = at;
      if (!pattern.test(text)) continue;
      this.#end = pattern.lastIndex;
      return at;
    }
    return -1;
  }
}

const SPACE = new RegExp(`[${WHITE_SPACE}]`);

function spaceBefore(text: string, start: number, end: number): number {
  let at = end;
  while (at > start && SPACE.test(text[at - 1])) at--;
  return at;
}

function spaceAfter(text: string, start: number): number {
  let at = start;
  while (at < text.length && SPACE.test(text[at])) at++;
  return at;
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
