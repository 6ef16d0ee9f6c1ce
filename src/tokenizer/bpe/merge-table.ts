/**
 * Which pairs of tokens merge, in what order, and into what.
 *
 * An open-addressing table in one typed array, four numbers a slot: left, right, rank + 1 (0 is empty), merged. A lookup is one
 * cache line, and the array may lie in shared memory, so that threads use one copy.
 */
const SLOT = 4;
const LEFT = 0;
const RIGHT = 1;
const RANK = 2;
const MERGED = 3;

/** No pair, or a pair that does not merge. */
export const NO_MERGE = 0x7fffffff;

/** The numbers of a table for so many merges. */
export function mergeTableSize(merges: number): number {
  return SLOT * 2 ** Math.ceil(Math.log2(Math.max(merges, 1) * 2.5));
}

/** Looks pairs up in an array of `mergeTableSize` numbers, and fills it. */
export class MergeTable {
  readonly #slots: Int32Array;
  readonly #mask: number;

  constructor(slots: Int32Array) {
    this.#slots = slots;
    this.#mask = slots.length / SLOT - 1;
  }

  /** Writes a merge; one that is there already takes the new rank. */
  set(left: number, right: number, rank: number, merged: number): void {
    const slots = this.#slots;
    let at = pairHash(left, right) & this.#mask;
    while (slots[at * SLOT + RANK] !== 0) {
      if (slots[at * SLOT + LEFT] === left && slots[at * SLOT + RIGHT] === right) break;
      at = (at + 1) & this.#mask;
    }
    slots[at * SLOT + LEFT] = left;
    slots[at * SLOT + RIGHT] = right;
    slots[at * SLOT + RANK] = rank + 1;
    slots[at * SLOT + MERGED] = merged;
  }

  /** The place of a pair, to be asked for its rank and result; -1 if it does not merge. */
  find(left: number, right: number): number {
    const slots = this.#slots;
    let at = pairHash(left, right) & this.#mask;
    for (;;) {
      const base = at * SLOT;
      if (slots[base + RANK] === 0) return -1;
      if (slots[base + LEFT] === left && slots[base + RIGHT] === right) return base;
      at = (at + 1) & this.#mask;
    }
  }

  rankAt(place: number): number {
    return this.#slots[place + RANK] - 1;
  }

  mergedAt(place: number): number {
    return this.#slots[place + MERGED];
  }
}

function pairHash(left: number, right: number): number {
  const mixed = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca77);
  return mixed ^ (mixed >>> 15);
}
