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

  constructor(tokens: readonly AddedToken[]) {
    this.#tokens = new Map(tokens.map((token) => [token.content, token]));
    const longestFirst = [...this.#tokens.keys()].sort((a, b) => b.length - a.length);
    // Not in Unicode mode: a token is found wherever its code units are.
    this.#pattern = tokens.length === 0 ? undefined : new RegExp(longestFirst.map(escaped).join("|"), "g");
  }

  /** The text as stretches, in order; nothing of it is left out. */
  stretches(text: string): Stretch[] {
    const stretches: Stretch[] = [];
    let done = 0;
    if (this.#pattern !== undefined) {
      for (const match of text.matchAll(this.#pattern)) {
        const token = this.#tokens.get(match[0]);
        // White space that the token before took along may reach into this one's.
        if (token === undefined || match.index < done) continue;
        const start = token.stripsLeft ? Math.max(done, spaceBefore(text, match.index)) : match.index;
        const end = match.index + match[0].length;
        if (start > done) stretches.push({ start: done, end: start, token: -1 });
        done = token.stripsRight ? spaceAfter(text, end) : end;
        stretches.push({ start, end: done, token: token.id });
      }
    }
    if (done < text.length) stretches.push({ start: done, end: text.length, token: -1 });
    return stretches;
  }
}

const SPACE = new RegExp(`[${WHITE_SPACE}]`);

function spaceBefore(text: string, end: number): number {
  let at = end;
  while (at > 0 && SPACE.test(text[at - 1])) at--;
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
