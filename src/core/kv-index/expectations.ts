import type { Nanoseconds } from "../clock.ts";
import { bitCount, highestBits, lowestBits } from "./block-mask.ts";
import { PairTable } from "./pair-table.ts";

const NONE = -1;

/** An entry is 32 adjacent bytes: six words, then the time of its expiry. */
const WORDS = 8;
const LANE = 0;
const PAGE = 1;
const MASK = 2;
/** Neighbours in the lane's order of recency; of a free entry, `NEWER` is the next free one. */
const OLDER = 3;
const NEWER = 4;
/** The entry made before it for the same page and lane. */
const BEFORE = 5;
const EXPIRES = 3;
const DOUBLES = 4;

/**
 * When expected evidence ends. An entry stands for blocks of one page that were expected of one lane together, so a
 * placement costs an entry per page; every block is in one entry at most, that of its latest placement, and keeps a
 * deadline of its own. Each lane has a list of its entries by recency: the oldest expire first, and a lane with a
 * capacity (approximate mode) forgets its least recently expected blocks when it is full. The bits that count are those in
 * the pages; this book only says which to clear.
 */
export class Expectations {
  /** The newest entry of a page and lane. There are never more entries than blocks, so the blocks are what is limited. */
  #entryOf: PairTable;
  #words: Int32Array;
  /** The same memory as `#words`, read as doubles. */
  #times: Float64Array;
  readonly #oldest: Int32Array;
  readonly #newest: Int32Array;
  /** Expected blocks by lane, and of all lanes. */
  readonly #count: Int32Array;
  #size = 0;
  /** Blocks that may be expected; there is memory for as many at least. */
  #maxBlocks: number;
  #freeEntry: number;

  constructor(maxBlocks: number, lanes: number) {
    this.#maxBlocks = maxBlocks;
    this.#entryOf = new PairTable(maxBlocks);
    this.#words = new Int32Array(maxBlocks * WORDS);
    this.#times = new Float64Array(this.#words.buffer);
    this.#oldest = new Int32Array(lanes).fill(NONE);
    this.#newest = new Int32Array(lanes).fill(NONE);
    this.#count = new Int32Array(lanes);
    this.#freeEntry = NONE;
    this.#chainFree(0, maxBlocks);
  }

  /** Blocks that are expected, added over all lanes. */
  get size(): number {
    return this.#size;
  }

  /** Blocks there is still room for. */
  get free(): number {
    return this.#maxBlocks - this.#size;
  }

  get bytes(): number {
    const perLane = this.#oldest.byteLength + this.#newest.byteLength + this.#count.byteLength;
    return this.#entryOf.bytes + this.#words.byteLength + perLane;
  }

  /**
   * Makes room for so many blocks in all; for when a replica joins, not for the hot path. Memory is taken half as much again ahead, up to
   * `most` blocks, so that a fleet that joins one by one does not have all of it copied each time.
   */
  reserve(maxBlocks: number, most: number = maxBlocks): void {
    this.#maxBlocks = Math.max(this.#maxBlocks, maxBlocks);
    const before = this.#entryOf.maxEntries;
    if (maxBlocks <= before) return;
    const entries = Math.max(maxBlocks, Math.min(most, before + (before >> 1)));
    const words = new Int32Array(entries * WORDS);
    words.set(this.#words);
    this.#words = words;
    this.#times = new Float64Array(words.buffer);
    this.#entryOf = this.#entryOf.enlarged(entries);
    this.#chainFree(before, entries);
  }

  /** The lane with most expected blocks. */
  largestLane(): number {
    let largest = 0;
    for (let lane = 1; lane < this.#count.length; lane++) if (this.#count[lane] > this.#count[largest]) largest = lane;
    return largest;
  }

  countOf(lane: number): number {
    return this.#count[lane];
  }

  /** The lane's least recent entry, or -1. */
  oldestOf(lane: number): number {
    return this.#oldest[lane];
  }

  /** The lane's least recent entry if it has expired, or -1. */
  expiredOf(lane: number, nowNs: Nanoseconds): number {
    const entry = this.#oldest[lane];
    return entry === NONE || this.#times[entry * DOUBLES + EXPIRES] > nowNs ? NONE : entry;
  }

  pageOf(entry: number): number {
    return this.#words[entry * WORDS + PAGE];
  }

  maskOf(entry: number): number {
    return this.#words[entry * WORDS + MASK];
  }

  /** Of an entry's blocks, the `count` that are forgotten first: where capacity decides, a prompt's last ones. */
  leastRecentOf(entry: number, count: number): number {
    const mask = this.maskOf(entry);
    if (count >= bitCount(mask)) return mask;
    return this.#times[entry * DOUBLES + EXPIRES] === Infinity ? highestBits(mask, count) : lowestBits(mask, count);
  }

  /**
   * Makes blocks of a page the lane's most recent, `fresh` of which were not expected before; the caller has made sure
   * there is room for those.
   */
  put(lane: number, page: number, bits: number, fresh: number, expiresNs: Nanoseconds): void {
    if (bits === 0) return;
    const added = bitCount(fresh);
    this.#count[lane] += added;
    this.#size += added;
    if (bits !== fresh) this.#take(lane, page, bits & ~fresh);
    const words = this.#words;
    const entry = this.#freeEntry;
    const at = entry * WORDS;
    this.#freeEntry = words[at + NEWER];
    words[at + LANE] = lane;
    words[at + PAGE] = page;
    words[at + MASK] = bits;
    words[at + BEFORE] = this.#entryOf.swap(lane, page, entry);
    this.#times[entry * DOUBLES + EXPIRES] = expiresNs;
    this.#linkNewest(lane, entry);
  }

  /** Forgets blocks of a page that are all expected. */
  remove(lane: number, page: number, bits: number): void {
    if (bits === 0) return;
    const gone = bitCount(bits);
    this.#count[lane] -= gone;
    this.#size -= gone;
    this.#take(lane, page, bits);
  }

  /** Takes blocks out of the entries they are in, and entries out of the book that have none left. */
  #take(lane: number, page: number, bits: number): void {
    const words = this.#words;
    let rest = bits;
    let after = NONE;
    for (let entry = this.#entryOf.get(lane, page); rest !== 0 && entry !== NONE;) {
      const at = entry * WORDS;
      const before = words[at + BEFORE];
      const left = words[at + MASK] & ~rest;
      rest &= ~words[at + MASK];
      words[at + MASK] = left;
      if (left !== 0) after = entry;
      else {
        if (after !== NONE) words[after * WORDS + BEFORE] = before;
        else if (before !== NONE) this.#entryOf.set(lane, page, before);
        else this.#entryOf.take(lane, page);
        this.#unlink(entry);
        words[at + NEWER] = this.#freeEntry;
        this.#freeEntry = entry;
      }
      entry = before;
    }
  }

  /** Adds entries from `from` to `to` to the free ones. */
  #chainFree(from: number, to: number): void {
    for (let entry = to - 1; entry >= from; entry--) {
      this.#words[entry * WORDS + NEWER] = this.#freeEntry;
      this.#freeEntry = entry;
    }
  }

  #linkNewest(lane: number, entry: number): void {
    const words = this.#words;
    const newest = this.#newest[lane];
    words[entry * WORDS + OLDER] = newest;
    words[entry * WORDS + NEWER] = NONE;
    if (newest === NONE) this.#oldest[lane] = entry;
    else words[newest * WORDS + NEWER] = entry;
    this.#newest[lane] = entry;
  }

  #unlink(entry: number): void {
    const words = this.#words;
    const lane = words[entry * WORDS + LANE];
    const older = words[entry * WORDS + OLDER];
    const newer = words[entry * WORDS + NEWER];
    if (older === NONE) this.#oldest[lane] = newer;
    else words[older * WORDS + NEWER] = newer;
    if (newer === NONE) this.#newest[lane] = older;
    else words[newer * WORDS + OLDER] = older;
  }
}
