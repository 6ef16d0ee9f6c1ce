import type { Nanoseconds } from "../clock.ts";
import { PairTable } from "./pair-table.ts";

const NONE = -1;

/** An entry is 32 adjacent bytes: four words, then the time of its expiry, then eight bytes that keep it in one cache line. */
const WORDS = 8;
const LANE = 0;
const BLOCK = 1;
const OLDER = 2;
const NEWER = 3;
const EXPIRES = 2;
const DOUBLES = 4;

/**
 * When expected evidence ends. Each lane has a list of its expected blocks by recency: the oldest expire first, and a
 * lane with a capacity (approximate mode) forgets its least recently expected block when it is full. The bits themselves
 * are in the pages; this book only says which to clear.
 */
export class Expectations {
  #entryOf: PairTable;
  #words: Int32Array;
  /** The same memory as `#words`, read as doubles. */
  #times: Float64Array;
  readonly #oldest: Int32Array;
  readonly #newest: Int32Array;
  readonly #count: Int32Array;
  #freeEntry: number;

  constructor(maxEntries: number, lanes: number) {
    this.#entryOf = new PairTable(maxEntries);
    this.#words = new Int32Array(maxEntries * WORDS);
    this.#times = new Float64Array(this.#words.buffer);
    this.#oldest = new Int32Array(lanes).fill(NONE);
    this.#newest = new Int32Array(lanes).fill(NONE);
    this.#count = new Int32Array(lanes);
    this.#freeEntry = NONE;
    this.#chainFree(0, maxEntries);
  }

  get size(): number {
    return this.#entryOf.size;
  }

  /** Expectations there is still room for. */
  get free(): number {
    return this.#entryOf.maxEntries - this.#entryOf.size;
  }

  get bytes(): number {
    const perLane = this.#oldest.byteLength + this.#newest.byteLength + this.#count.byteLength;
    return this.#entryOf.bytes + this.#words.byteLength + perLane;
  }

  /** Makes room for so many expectations in all; for when a replica joins, not for the hot path. */
  reserve(maxEntries: number): void {
    const before = this.#entryOf.maxEntries;
    if (maxEntries <= before) return;
    const words = new Int32Array(maxEntries * WORDS);
    words.set(this.#words);
    this.#words = words;
    this.#times = new Float64Array(words.buffer);
    this.#entryOf = new PairTable(maxEntries);
    for (let lane = 0; lane < this.#oldest.length; lane++) {
      for (let entry = this.#oldest[lane]; entry !== NONE; entry = words[entry * WORDS + NEWER]) {
        this.#entryOf.set(lane, words[entry * WORDS + BLOCK], entry);
      }
    }
    this.#chainFree(before, maxEntries);
  }

  /** The lane with most expectations. */
  largestLane(): number {
    let largest = 0;
    for (let lane = 1; lane < this.#count.length; lane++) if (this.#count[lane] > this.#count[largest]) largest = lane;
    return largest;
  }

  countOf(lane: number): number {
    return this.#count[lane];
  }

  /** The lane's least recently expected block, or -1. */
  oldestOf(lane: number): number {
    const entry = this.#oldest[lane];
    return entry === NONE ? NONE : this.#words[entry * WORDS + BLOCK];
  }

  /** The lane's oldest block if it has expired, or -1. */
  expiredOf(lane: number, nowNs: Nanoseconds): number {
    const entry = this.#oldest[lane];
    if (entry === NONE || this.#times[entry * DOUBLES + EXPIRES] > nowNs) return NONE;
    return this.#words[entry * WORDS + BLOCK];
  }

  /** Adds an expectation that is not there yet as the lane's most recent; the caller has made sure there is room. */
  add(lane: number, block: number, expiresNs: Nanoseconds): void {
    const entry = this.#freeEntry;
    const at = entry * WORDS;
    this.#freeEntry = this.#words[at + NEWER];
    this.#words[at + LANE] = lane;
    this.#words[at + BLOCK] = block;
    this.#times[entry * DOUBLES + EXPIRES] = expiresNs;
    this.#entryOf.set(lane, block, entry);
    this.#count[lane]++;
    this.#linkNewest(lane, entry);
  }

  /** Makes an expectation the lane's most recent, if there is one. */
  renew(lane: number, block: number, expiresNs: Nanoseconds): void {
    const entry = this.#entryOf.get(lane, block);
    if (entry === NONE) return;
    this.#times[entry * DOUBLES + EXPIRES] = expiresNs;
    this.#unlink(entry);
    this.#linkNewest(lane, entry);
  }

  remove(lane: number, block: number): void {
    const entry = this.#entryOf.take(lane, block);
    if (entry === NONE) return;
    this.#unlink(entry);
    this.#count[lane]--;
    this.#words[entry * WORDS + NEWER] = this.#freeEntry;
    this.#freeEntry = entry;
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
