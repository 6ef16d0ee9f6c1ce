/** What the patterns of byte-level tokenizers tell apart. */
export const OTHER = 0;
export const LETTER = 1;
export const NUMBER = 2;
export const SPACE = 3;
export const LINE_END = 4;
/** Half of a pair: look at the whole code point. */
export const SURROGATE = 5;

/**
 * `\s` as the engines' tokenizers mean it, Unicode's White_Space. JavaScript's own has U+FEFF too, and lacks U+0085.
 * Pinned by byte-bpe.test.ts.
 */
export const WHITE_SPACE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

let table: Uint8Array | undefined;

/** The class of every UTF-16 code unit; made once, at first use. */
export function unitClasses(): Uint8Array {
  table ??= classify();
  return table;
}

/** The class of a code point beyond the basic plane, or of half a pair that stands alone. */
export function pointClass(point: number): number {
  const character = String.fromCodePoint(point);
  if (/\p{L}/u.test(character)) return LETTER;
  return /\p{N}/u.test(character) ? NUMBER : OTHER;
}

function classify(): Uint8Array {
  const classes = new Uint8Array(0x10000);
  classes.fill(SURROGATE, 0xd800, 0xe000);
  const mark = (units: readonly [number, number], pattern: RegExp, name: number): void => {
    const [from, to] = units;
    const text = String.fromCharCode(...Array.from({ length: to - from }, (_, i) => from + i));
    for (const match of text.matchAll(pattern))
      classes.fill(name, from + match.index, from + match.index + match[0].length);
  };
  for (let from = 0; from < 0x10000; from += 0x800) {
    if (from === 0xd800) continue;
    const units = [from, from + 0x800] as const;
    mark(units, /\p{L}+/gu, LETTER);
    mark(units, /\p{N}+/gu, NUMBER);
    mark(units, new RegExp(`[${WHITE_SPACE}]+`, "g"), SPACE);
  }
  classes[0x0a] = LINE_END;
  classes[0x0d] = LINE_END;
  return classes;
}
