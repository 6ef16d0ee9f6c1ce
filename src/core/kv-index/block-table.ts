import { WarmpathError } from "../errors.ts";
import { hashAt, PAGE_BLOCKS } from "./page-layout.ts";

const MAX_LOAD = 0.88;
/**
 * A slot is 1 + the distance from home in the upper 6 bits, and below it the block's id with a tag from its hash in
 * whatever bits the ids leave free; 0 is an empty slot.
 */
const ENTRY_BITS = 26;
const ENTRY_MASK = (1 << ENTRY_BITS) - 1;
const ONE_FURTHER = 1 << ENTRY_BITS;
const MAX_DISTANCE = 63;

/** The most blocks that can be numbered, in whole pages. */
export const MOST_INDEX_BLOCKS: number = ENTRY_MASK - (ENTRY_MASK % PAGE_BLOCKS);

/**
 * Finds a block by its sequence hash: Robin Hood hashing, four bytes a slot. The hashes themselves stay in the pages. The
 * distance tells which home a slot belongs to, and the tag which of its blocks it may be, so a probe hardly ever reads a
 * page in vain, and a removal shifts its followers back without reading pages at all.
 */
export class BlockTable {
  readonly #slots: Int32Array;
  readonly #words: Int32Array;
  // Numbers from the start: of a field that was undefined first, every use checks what it is.
  readonly #scale: number = 0;
  readonly #idBits: number = 0;
  readonly #idMask: number = 0;
  readonly #tagMask: number = 0;
  /** What was read ahead; kept so that no compiler finds the reading useless. */
  readAhead = 0;

  /** `words` holds the `[lo, hi]` lanes of a block at `hashAt(id)`. */
  constructor(maxBlocks: number, words: Int32Array) {
    if (maxBlocks > MOST_INDEX_BLOCKS) {
      const message = `maxBlocks is ${maxBlocks}, the index can hold ${MOST_INDEX_BLOCKS}`;
      throw new WarmpathError("WP_CAPACITY_EXCEEDED", message);
    }
    const homes = Math.ceil(maxBlocks / MAX_LOAD);
    // Slack behind the last home saves every probe the wrap-around.
    this.#slots = new Int32Array(homes + MAX_DISTANCE + 1);
    this.#words = words;
    this.#scale = homes / 4294967296;
    this.#idBits = 32 - Math.clz32(maxBlocks);
    this.#idMask = (1 << this.#idBits) - 1;
    this.#tagMask = (1 << (ENTRY_BITS - this.#idBits)) - 1;
  }

  get bytes(): number {
    return this.#slots.byteLength;
  }

  /** The block's id, or -1. */
  find(lo: number, hi: number): number {
    return Math.max(-1, this.#search(lo, hi));
  }

  /** The block's id; where it is not here, the complement of the slot that would be its own. */
  #search(lo: number, hi: number): number {
    const slots = this.#slots;
    const words = this.#words;
    const tag = (hi & this.#tagMask) << this.#idBits;
    let slot = ((lo >>> 0) * this.#scale) | 0;
    for (let want = ONE_FURTHER | tag; ; want = (want + ONE_FURTHER) | 0, slot++) {
      const word = slots[slot];
      if (word >>> ENTRY_BITS < want >>> ENTRY_BITS) return ~slot;
      if (((word ^ want) & ~this.#idMask) !== 0) continue;
      const id = word & this.#idMask;
      const at = hashAt(id);
      if (words[at] === lo && words[at + 1] === hi) return id;
    }
  }

  /**
   * Takes ids from `firstId` on for `count` blocks of a chain, from its block `from` on, and writes their hashes into the
   * page they are to lie in; stops before the first block that is here already. Returns how many it took.
   */
  insertRun(sequence: Uint32Array, from: number, count: number, firstId: number): number {
    const words = this.#words;
    this.#readAhead(sequence, 2 * from, 2 * (from + count));
    let at = hashAt(firstId);
    let taken = 0;
    for (let i = 2 * from; taken < count; i += 2, at += 2, taken++) {
      const lo = sequence[i] | 0;
      const hi = sequence[i + 1] | 0;
      const found = this.#search(lo, hi);
      if (found >= 0) break;
      words[at] = lo;
      words[at + 1] = hi;
      this.#put(lo, hi, firstId + taken, ~found);
    }
    return taken;
  }

  /** Forgets the blocks of one page with ids from `first` to `end`, each of which is here. */
  removeRun(first: number, end: number): void {
    const words = this.#words;
    let at = hashAt(first);
    this.#readAheadOfPage(at, at + 2 * (end - first));
    for (let id = first; id < end; id++, at += 2) this.#take(words[at], words[at + 1], id);
  }

  /**
   * Enters a block into the slot that is its own; whoever is there and behind it moves one further. A table this size fills up
   * only under hashes made to collide; the block that finds no place is then simply not found again, which an index may do.
   */
  #put(lo: number, hi: number, id: number, slot: number): void {
    const slots = this.#slots;
    const distance = slot - (((lo >>> 0) * this.#scale) | 0);
    if (distance >= MAX_DISTANCE) return;
    let at = slot;
    let inHand = ((distance + 1) << ENTRY_BITS) | ((hi & this.#tagMask) << this.#idBits) | id;
    // It ends with whoever was moved out of an empty slot, or is too far from home now.
    do {
      const word = slots[at];
      slots[at++] = inHand;
      inHand = (word + ONE_FURTHER) | 0;
    } while (inHand >>> ENTRY_BITS > 1);
  }

  /** Removes a block; whoever behind it is not at home moves one nearer to it. */
  #take(lo: number, hi: number, id: number): void {
    const slots = this.#slots;
    let slot = ((lo >>> 0) * this.#scale) | 0;
    let want = ONE_FURTHER | ((hi & this.#tagMask) << this.#idBits) | id;
    for (; slots[slot] !== want; slot++, want = (want + ONE_FURTHER) | 0) {
      if (slots[slot] >>> ENTRY_BITS < want >>> ENTRY_BITS) return;
    }
    for (let next = slots[slot + 1]; next >>> ENTRY_BITS > 1; next = slots[slot + 1]) {
      slots[slot++] = (next - ONE_FURTHER) | 0;
    }
    slots[slot] = 0;
  }

  /** Reads the homes of hashes that are about to be asked for: side by side, memory answers much sooner than in turn. */
  #readAhead(sequence: Uint32Array, from: number, to: number): void {
    const slots = this.#slots;
    const scale = this.#scale;
    let seen = 0;
    for (let i = from; i < to; i += 2) seen ^= slots[(sequence[i] * scale) | 0];
    this.readAhead = seen;
  }

  /** The same for hashes that lie in a page. */
  #readAheadOfPage(from: number, to: number): void {
    const slots = this.#slots;
    const words = this.#words;
    const scale = this.#scale;
    let seen = 0;
    for (let i = from; i < to; i += 2) seen ^= slots[((words[i] >>> 0) * scale) | 0];
    this.readAhead = seen;
  }
}
