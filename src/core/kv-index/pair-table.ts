const WORDS = 3;
const MAX_LOAD = 0.75;
const EMPTY = -1;

/**
 * A small integer for a pair of lane and block, or lane and page: how many extra copies an engine holds, or where an
 * expectation is kept.
 * Linear probing with backward-shift removal; 12 bytes a slot, allocated once.
 */
export class PairTable {
  readonly maxEntries: number;
  readonly #words: Int32Array;
  readonly #mask: number;
  #size = 0;

  constructor(maxEntries: number) {
    this.maxEntries = maxEntries;
    let slots = 4;
    while (slots * MAX_LOAD < maxEntries) slots *= 2;
    this.#mask = slots - 1;
    this.#words = new Int32Array(slots * WORDS);
    for (let at = 0; at < this.#words.length; at += WORDS) this.#words[at] = EMPTY;
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#words.byteLength;
  }

  /** The pair's value, or -1. */
  get(lane: number, block: number): number {
    const slot = this.#slotOf(lane, block);
    return this.#words[slot * WORDS] === EMPTY ? -1 : this.#words[slot * WORDS + 2];
  }

  /** Sets a pair's value; false if the table is full. */
  set(lane: number, block: number, value: number): boolean {
    const at = this.#slotOf(lane, block) * WORDS;
    if (this.#words[at] === EMPTY) {
      if (this.#size >= this.maxEntries) return false;
      this.#size++;
      this.#words[at] = lane;
      this.#words[at + 1] = block;
    }
    this.#words[at + 2] = value;
    return true;
  }

  /** Sets the value of a pair there is room for, and returns what it was before, or -1. */
  swap(lane: number, block: number, value: number): number {
    const words = this.#words;
    const at = this.#slotOf(lane, block) * WORDS;
    const before = words[at] === EMPTY ? -1 : words[at + 2];
    if (words[at] === EMPTY) this.#size++;
    words[at] = lane;
    words[at + 1] = block;
    words[at + 2] = value;
    return before;
  }

  /** Removes a pair and returns its value, or -1 if it was not there. */
  take(lane: number, block: number): number {
    const slot = this.#slotOf(lane, block);
    if (this.#words[slot * WORDS] === EMPTY) return -1;
    const value = this.#words[slot * WORDS + 2];
    this.#removeAt(slot);
    return value;
  }

  /** The same pairs in a larger table. */
  enlarged(maxEntries: number): PairTable {
    const larger = new PairTable(maxEntries);
    const words = this.#words;
    for (let at = 0; at < words.length; at += WORDS) {
      if (words[at] !== EMPTY) larger.set(words[at], words[at + 1], words[at + 2]);
    }
    return larger;
  }

  #removeAt(slotToClear: number): void {
    const words = this.#words;
    const mask = this.#mask;
    let hole = slotToClear;
    this.#size--;
    for (let slot = (hole + 1) & mask; words[slot * WORDS] !== EMPTY; slot = (slot + 1) & mask) {
      const home = this.#home(words[slot * WORDS], words[slot * WORDS + 1]);
      // An entry may fill the hole only if its home does not lie behind the hole.
      if (((slot - home) & mask) < ((slot - hole) & mask)) continue;
      words[hole * WORDS] = words[slot * WORDS];
      words[hole * WORDS + 1] = words[slot * WORDS + 1];
      words[hole * WORDS + 2] = words[slot * WORDS + 2];
      hole = slot;
    }
    words[hole * WORDS] = EMPTY;
  }

  /** The blocks of a page have neighbouring homes, since whoever asks for one asks for the others next. */
  #home(lane: number, block: number): number {
    const mixed = Math.imul((block >> 4) ^ Math.imul(lane + 1, 0x9e3779b1), 0x85ebca6b);
    return ((((mixed ^ (mixed >>> 15)) << 4) | (block & 15)) >>> 0) & this.#mask;
  }

  #slotOf(lane: number, block: number): number {
    const words = this.#words;
    let slot = this.#home(lane, block);
    while (words[slot * WORDS] !== EMPTY) {
      if (words[slot * WORDS] === lane && words[slot * WORDS + 1] === block) break;
      slot = (slot + 1) & this.#mask;
    }
    return slot;
  }
}
