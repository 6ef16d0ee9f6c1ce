import type { Nanoseconds } from "../clock.ts";
import { PairTable } from "./pair-table.ts";

const NONE = -1;

/**
 * When expected evidence ends. Each lane has a list of its expected blocks by recency: the oldest expire first, and a
 * lane with a capacity (approximate mode) forgets its least recently expected block when it is full. The bits themselves
 * are in the pages; this book only says which to clear.
 */
export class Expectations {
  readonly #entryOf: PairTable;
  readonly #lane: Int32Array;
  readonly #block: Int32Array;
  readonly #expiresNs: Float64Array;
  readonly #older: Int32Array;
  readonly #newer: Int32Array;
  readonly #oldest: Int32Array;
  readonly #newest: Int32Array;
  readonly #count: Int32Array;
  #free: number;

  constructor(maxEntries: number, lanes: number) {
    this.#entryOf = new PairTable(maxEntries);
    this.#lane = new Int32Array(maxEntries);
    this.#block = new Int32Array(maxEntries);
    this.#expiresNs = new Float64Array(maxEntries);
    this.#older = new Int32Array(maxEntries);
    this.#newer = new Int32Array(maxEntries);
    this.#oldest = new Int32Array(lanes).fill(NONE);
    this.#newest = new Int32Array(lanes).fill(NONE);
    this.#count = new Int32Array(lanes);
    for (let entry = 0; entry < maxEntries; entry++) this.#newer[entry] = entry + 1 < maxEntries ? entry + 1 : NONE;
    this.#free = maxEntries > 0 ? 0 : NONE;
  }

  get size(): number {
    return this.#entryOf.size;
  }

  /** Expectations there is still room for. */
  get free(): number {
    return this.#entryOf.maxEntries - this.#entryOf.size;
  }

  get bytes(): number {
    let bytes = this.#entryOf.bytes + this.#expiresNs.byteLength;
    for (const array of [this.#lane, this.#block, this.#older, this.#newer, this.#oldest, this.#newest, this.#count]) {
      bytes += array.byteLength;
    }
    return bytes;
  }

  countOf(lane: number): number {
    return this.#count[lane];
  }

  has(lane: number, block: number): boolean {
    return this.#entryOf.get(lane, block) !== NONE;
  }

  /** The lane's least recently expected block, or -1. */
  oldestOf(lane: number): number {
    const entry = this.#oldest[lane];
    return entry === NONE ? NONE : this.#block[entry];
  }

  /** The lane's oldest block if it has expired, or -1. */
  expiredOf(lane: number, nowNs: Nanoseconds): number {
    const entry = this.#oldest[lane];
    return entry !== NONE && this.#expiresNs[entry] <= nowNs ? this.#block[entry] : NONE;
  }

  /** Adds or refreshes an expectation as the lane's most recent; the caller has made sure there is room. */
  renew(lane: number, block: number, expiresNs: Nanoseconds): void {
    let entry = this.#entryOf.get(lane, block);
    if (entry === NONE) {
      entry = this.#free;
      this.#free = this.#newer[entry];
      this.#lane[entry] = lane;
      this.#block[entry] = block;
      this.#entryOf.set(lane, block, entry);
      this.#count[lane]++;
    } else {
      this.#unlink(entry);
    }
    this.#expiresNs[entry] = expiresNs;
    const newest = this.#newest[lane];
    this.#older[entry] = newest;
    this.#newer[entry] = NONE;
    if (newest === NONE) this.#oldest[lane] = entry;
    else this.#newer[newest] = entry;
    this.#newest[lane] = entry;
  }

  remove(lane: number, block: number): void {
    const entry = this.#entryOf.get(lane, block);
    if (entry === NONE) return;
    this.#entryOf.remove(lane, block);
    this.#unlink(entry);
    this.#count[lane]--;
    this.#newer[entry] = this.#free;
    this.#free = entry;
  }

  #unlink(entry: number): void {
    const lane = this.#lane[entry];
    const older = this.#older[entry];
    const newer = this.#newer[entry];
    if (older === NONE) this.#oldest[lane] = newer;
    else this.#newer[older] = newer;
    if (newer === NONE) this.#newest[lane] = older;
    else this.#older[newer] = older;
  }
}
