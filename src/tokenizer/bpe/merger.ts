import { type MergeTable, NO_MERGE } from "./merge-table.ts";

/** Symbols that there is always room for; what a longer piece needs, 32 bytes for each of its own, is given back after it. */
const ROOM_KEPT = 1 << 16;
/** Up to here looking at every pair for each merge is faster than keeping them in order. */
const SHORT = 48;

/**
 * Merges the symbols of a piece: always the pair of lowest rank, the leftmost of equals, until none is left. Works in arrays
 * of its own.
 */
export class Merger {
  readonly #table: MergeTable;
  #symbols: Int32Array = new Int32Array(256);
  /** The place in the table of the pair that begins at each symbol; -1 if it does not merge. */
  #places: Int32Array = new Int32Array(256);
  #next: Int32Array = new Int32Array(0);
  #previous: Int32Array = new Int32Array(0);
  #heap: Float64Array = new Float64Array(0);
  #heapSize = 0;

  constructor(table: MergeTable) {
    this.#table = table;
  }

  /** What there was room for, and the result after `merge`. */
  get symbols(): Int32Array {
    return this.#symbols;
  }

  /** Room for so many symbols, to be filled before `merge`. */
  room(count: number): Int32Array {
    if (this.#symbols.length < count || (this.#symbols.length > ROOM_KEPT && count <= ROOM_KEPT)) {
      const length = roomFor(count);
      this.#symbols = new Int32Array(length);
      this.#places = new Int32Array(length);
      if (this.#next.length > length) this.#takeLinks(0);
    }
    return this.#symbols;
  }

  /** Merges the first `count` symbols in place and returns how many are left. */
  merge(count: number): number {
    return count <= SHORT ? this.#mergeShort(count) : this.#mergeLong(count);
  }

  #mergeShort(count: number): number {
    const table = this.#table;
    const symbols = this.#symbols;
    const places = this.#places;
    let left = count;
    for (let i = 0; i + 1 < left; i++) places[i] = table.find(symbols[i], symbols[i + 1]);
    while (left > 1) {
      let best = -1;
      let bestRank = NO_MERGE;
      for (let i = 0; i + 1 < left; i++) {
        if (places[i] < 0) continue;
        const rank = table.rankAt(places[i]);
        if (rank < bestRank) {
          bestRank = rank;
          best = i;
        }
      }
      if (best < 0) break;
      symbols[best] = table.mergedAt(places[best]);
      left--;
      for (let i = best + 1; i < left; i++) {
        symbols[i] = symbols[i + 1];
        places[i] = places[i + 1];
      }
      if (best > 0) places[best - 1] = table.find(symbols[best - 1], symbols[best]);
      if (best + 1 < left) places[best] = table.find(symbols[best], symbols[best + 1]);
    }
    return left;
  }

  /** The same with a heap and a linked list: a piece of a million characters must not take a million squared steps. */
  #mergeLong(count: number): number {
    const table = this.#table;
    const symbols = this.#symbols;
    const places = this.#places;
    if (this.#next.length < count) this.#takeLinks(roomFor(count));
    const next = this.#next;
    const previous = this.#previous;
    this.#heapSize = 0;
    for (let i = 0; i < count; i++) {
      next[i] = i + 1;
      previous[i] = i - 1;
      places[i] = i + 1 < count ? table.find(symbols[i], symbols[i + 1]) : -1;
      if (places[i] >= 0) this.#push(table.rankAt(places[i]), i);
    }
    while (this.#heapSize > 0) {
      const { rank, at } = this.#pop();
      // What stood in the heap may be merged away or have another neighbour by now.
      if (places[at] < 0 || table.rankAt(places[at]) !== rank) continue;
      const gone = next[at];
      symbols[at] = table.mergedAt(places[at]);
      places[gone] = -1;
      next[at] = next[gone];
      if (next[at] < count) previous[next[at]] = at;
      for (const first of [previous[at], at]) {
        if (first < 0) continue;
        places[first] = next[first] < count ? table.find(symbols[first], symbols[next[first]]) : -1;
        if (places[first] >= 0) this.#push(table.rankAt(places[first]), first);
      }
    }
    let left = 0;
    for (let i = 0; i < count; i = next[i]) symbols[left++] = symbols[i];
    return left;
  }

  #takeLinks(length: number): void {
    this.#next = new Int32Array(length);
    this.#previous = new Int32Array(length);
    // Every symbol enters once at the start; every merge takes one out and adds two at most.
    this.#heap = new Float64Array(length * 2);
  }

  /** Rank and place in one number: ranks stay far below 2^21, places below 2^32. */
  #push(rank: number, at: number): void {
    const heap = this.#heap;
    const key = rank * 2 ** 32 + at;
    let i = this.#heapSize++;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (heap[parent] <= key) break;
      heap[i] = heap[parent];
      i = parent;
    }
    heap[i] = key;
  }

  #pop(): { rank: number; at: number } {
    const heap = this.#heap;
    const top = heap[0];
    const key = heap[--this.#heapSize];
    const size = this.#heapSize;
    let i = 0;
    for (let child = 1; child < size; child = 2 * i + 1) {
      if (child + 1 < size && heap[child + 1] < heap[child]) child++;
      if (heap[child] >= key) break;
      heap[i] = heap[child];
      i = child;
    }
    heap[i] = key;
    const rank = Math.floor(top / 2 ** 32);
    return { rank, at: top - rank * 2 ** 32 };
  }
}

/** Twice what is needed now, so that not every longer piece takes it anew; no more than that where it is much. */
function roomFor(count: number): number {
  return Math.max(count, Math.min(count * 2, ROOM_KEPT));
}
