import { WarmpathError } from "../../core/errors.ts";
import { NestedSplitter, RegexSplitter, translatePattern } from "./regex-splitter.ts";
import type { Splitter } from "./splitter.ts";
import { WordSplitter, wordPattern } from "./word-splitter.ts";

/** Takes every text as one piece. */
const WHOLE: Splitter = { cutsAfterWords: false, pieceEnd: (_text, _from, end) => end };

/** The splitter for patterns that are applied one after another. */
export function createSplitter(patterns: readonly string[]): Splitter {
  const [first, ...others] = patterns.map(splitterFor);
  return others.reduce<Splitter>((outer, inner) => new NestedSplitter(outer, inner), first ?? WHOLE);
}

function splitterFor(pattern: string): Splitter {
  if (pattern === wordPattern("\\p{N}{1,3}")) return new WordSplitter(3);
  if (pattern === wordPattern("\\p{N}")) return new WordSplitter(1);
  const translated = translatePattern(pattern);
  if (translated !== undefined) return new RegexSplitter(translated);
  throw new WarmpathError("WP_INVALID_INPUT", `tokenizer.json: the pattern ${pattern} cannot be used`);
}
