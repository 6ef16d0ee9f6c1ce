/**
 * Tokens of pieces seen before, by their text.
 *
 * A `Map` would need a string for every piece; here the text is hashed where it stands and compared with a copy in one
 * long array. Memory is allocated once. When it is full the cache starts afresh: what is in use comes back at once, and nothing
 * has to be kept in order of use.
 */
const ENTRY = 4;
const HASH = 0;
const TEXT_START = 1;
/** Length of the text in the upper half, number of tokens in the lower. */
const LENGTHS = 2;
/** The token itself where it is one, else where the tokens start. */
const TOKENS = 3;

/** Longer pieces are rare, and a cache full of them would help nobody. */
export const LONGEST_CACHED = 96;

/**
 * Places that are looked at for a piece. The table is never more than half full, so that pieces of a language are found in the first few;
 * of those that somebody chose to meet in one place, the rest is merged again each time.
 */
const MOST_LOOKS = 32;

export class WordCache {
  readonly #slots: Int32Array;
  readonly #entries: Int32Array;
  readonly #text: Uint16Array;
  readonly #tokens: Int32Array;
  readonly #maxEntries: number;
  #entryCount = 0;
  #textLength = 0;
  #tokenCount = 0;

  constructor(maxWords: number) {
    const slots = 2 ** Math.ceil(Math.log2(maxWords * 2));
    this.#slots = new Int32Array(slots);
    this.#maxEntries = maxWords;
    this.#entries = new Int32Array(maxWords * ENTRY);
    this.#text = new Uint16Array(maxWords * 12);
    this.#tokens = new Int32Array(maxWords * 4);
  }

  /** Writes the tokens of `text` from `from` to `to` to `out` and returns how many they are; -1 if they are not known. */
  read(text: string, from: number, to: number, hash: number, out: Uint32Array, at: number): number {
    const entries = this.#entries;
    const mask = this.#slots.length - 1;
    for (let looks = 0, slot = hash & mask; looks < MOST_LOOKS; looks++, slot = (slot + 1) & mask) {
      if (this.#slots[slot] === 0) return -1;
      const entry = (this.#slots[slot] - 1) * ENTRY;
      if (entries[entry + HASH] !== hash || !this.#holds(entry, text, from, to)) continue;
      const count = entries[entry + LENGTHS] & 0xffff;
      const tokens = entries[entry + TOKENS];
      if (count === 1) out[at] = tokens;
      else for (let i = 0; i < count; i++) out[at + i] = this.#tokens[tokens + i];
      return count;
    }
    return -1;
  }

  /** Keeps the tokens of a piece that `read` did not know, if there is a place where it would be found. */
  write(text: string, from: number, to: number, hash: number, tokens: Int32Array, count: number): void {
    const length = to - from;
    const isFull =
      this.#entryCount === this.#maxEntries ||
      this.#textLength + length > this.#text.length ||
      this.#tokenCount + count > this.#tokens.length;
    if (isFull) this.#clear();
    const slot = this.#freeSlot(hash);
    if (slot < 0) return;
    const entry = this.#entryCount * ENTRY;
    const entries = this.#entries;
    entries[entry + HASH] = hash;
    entries[entry + TEXT_START] = this.#textLength;
    entries[entry + LENGTHS] = (length << 16) | count;
    entries[entry + TOKENS] = count === 1 ? tokens[0] : this.#tokenCount;
    for (let i = from; i < to; i++) this.#text[this.#textLength++] = text.charCodeAt(i);
    if (count > 1) for (let i = 0; i < count; i++) this.#tokens[this.#tokenCount++] = tokens[i];
    this.#slots[slot] = ++this.#entryCount;
  }

  #freeSlot(hash: number): number {
    const mask = this.#slots.length - 1;
    for (let looks = 0; looks < MOST_LOOKS; looks++) {
      const slot = (hash + looks) & mask;
      if (this.#slots[slot] === 0) return slot;
    }
    return -1;
  }

  #holds(entry: number, text: string, from: number, to: number): boolean {
    if (this.#entries[entry + LENGTHS] >>> 16 !== to - from) return false;
    const kept = this.#text;
    let at = this.#entries[entry + TEXT_START];
    for (let i = from; i < to; i++, at++) if (kept[at] !== text.charCodeAt(i)) return false;
    return true;
  }

  #clear(): void {
    this.#slots.fill(0);
    this.#entryCount = 0;
    this.#textLength = 0;
    this.#tokenCount = 0;
  }
}

/** The hash of a piece, for `read` and `write`. */
export function pieceHash(text: string, from: number, to: number): number {
  let hash = 0x811c9dc5 | 0;
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  // Neighbouring slots are decided by the low bits, into which the last characters alone have not spread yet.
  return hash ^ (hash >>> 15);
}
