import { WarmpathError } from "../errors.ts";
import { hashAt, PAGE_BLOCKS } from "./page-layout.ts";

const MAX_LOAD = 0.88;
/**
 * A sparse table has most blocks at home, so that what a probe finds is foreseen: entering and forgetting them takes half the time. But only
 * as far as it fits into a processor's own cache.
 */
const SPARSE_LOAD = 0.22;
const NEAR_SLOTS = 1 << 18;
/**
 * A slot is 1 + the distance from home in the upper 6 bits, and below it the block's id with a tag from its hash in
 * whatever bits the ids leave free; 0 is an empty slot.
 */
const ENTRY_BITS = 26;
const ENTRY_MASK = (1 << ENTRY_BITS) - 1;
const ONE_FURTHER = 1 << ENTRY_BITS;
const MAX_DISTANCE = 63;
/**
 * Homes lie in groups: a multiplication of the hash's upper bits tells the group, its lower bits the home in it. So the table need not
 * be a power of two, and finding a home, which everything else waits for, needs no floating point.
 */
const GROUP_BITS = 12;
const MOST_GROUPS = 1 << GROUP_BITS;

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
  readonly #groups: number = 0;
  readonly #groupBits: number = 0;
  readonly #groupMask: number = 0;
  readonly #idBits: number = 0;
  readonly #idMask: number = 0;
  readonly #tagMask: number = 0;
  /** Whether slots are so far away that it pays to ask for several at once. */
  readonly #isFar: boolean;
  /** What was read ahead; kept so that no compiler finds the reading useless. */
  readAhead = 0;

  /** `words` holds the `[lo, hi]` lanes of a block at `hashAt(id)`; a sparse table takes up to a megabyte more. */
  constructor(maxBlocks: number, words: Int32Array, isSparse: boolean) {
    if (maxBlocks > MOST_INDEX_BLOCKS) {
      const message = `maxBlocks is ${maxBlocks}, the index can hold ${MOST_INDEX_BLOCKS}`;
      throw new WarmpathError("WP_CAPACITY_EXCEEDED", message);
    }
    const nearHomes = isSparse ? Math.min(maxBlocks / SPARSE_LOAD, NEAR_SLOTS) : 0;
    const homes = Math.max(maxBlocks / MAX_LOAD, nearHomes);
    this.#groupBits = Math.max(0, Math.ceil(Math.log2(homes / MOST_GROUPS)));
    this.#groupMask = (1 << this.#groupBits) - 1;
    this.#groups = Math.ceil(homes / (1 << this.#groupBits));
    // Slack behind the last home saves every probe the wrap-around.
    this.#slots = new Int32Array((this.#groups << this.#groupBits) + MAX_DISTANCE + 1);
    this.#isFar = this.#slots.length > 2 * NEAR_SLOTS;
    this.#words = words;
    this.#idBits = 32 - Math.clz32(maxBlocks);
    this.#idMask = (1 << this.#idBits) - 1;
    this.#tagMask = (1 << (ENTRY_BITS - this.#idBits)) - 1;
  }

  get bytes(): number {
    return this.#slots.byteLength;
  }

  /** The block's id, or -1. */
  find(lo: number, hi: number): number {
    const slots = this.#slots;
    const words = this.#words;
    const idMask = this.#idMask;
    let slot = this.#home(lo);
    for (let want = ONE_FURTHER | this.#tag(hi); ; want = (want + ONE_FURTHER) | 0, slot++) {
      const word = slots[slot];
      if (word >>> ENTRY_BITS < want >>> ENTRY_BITS) return -1;
      if (((word ^ want) & ~idMask) !== 0) continue;
      const id = word & idMask;
      const at = hashAt(id);
      if (words[at] === lo && words[at + 1] === hi) return id;
    }
  }

  /**
   * Takes ids from `firstId` on for `count` blocks of a chain, from its block `from` on, and writes their hashes into the
   * page they are to lie in; stops before the first block that is here already. Returns how many it took.
   */
  insertRun(sequence: Uint32Array, from: number, count: number, firstId: number): number {
    const slots = this.#slots;
    const words = this.#words;
    const idMask = this.#idMask;
    if (this.#isFar) this.#readAhead(sequence, 2 * from, 2 * (from + count));
    let target = hashAt(firstId);
    let taken = 0;
    blocks: for (let i = 2 * from; taken < count; i += 2, target += 2, taken++) {
      const lo = sequence[i] | 0;
      const hi = sequence[i + 1] | 0;
      const home = this.#home(lo);
      let slot = home;
      let inHand = ONE_FURTHER | this.#tag(hi);
      let word = slots[slot];
      for (; word >>> ENTRY_BITS >= inHand >>> ENTRY_BITS; word = slots[++slot]) {
        if (((word ^ inHand) & ~idMask) === 0) {
          const at = hashAt(word & idMask);
          if (words[at] === lo && words[at + 1] === hi) break blocks;
        }
        inHand = (inHand + ONE_FURTHER) | 0;
      }
      words[target] = lo;
      words[target + 1] = hi;
      // A table this size fills up only under hashes made to collide. Whoever finds no place is then not found again, which an index may do.
      if (slot - home >= MAX_DISTANCE) continue;
      inHand |= firstId + taken;
      // Whoever is there and behind moves one further; it ends with who was moved out of an empty slot, or is too far from home now.
      do {
        word = slots[slot];
        slots[slot++] = inHand;
        inHand = (word + ONE_FURTHER) | 0;
      } while (inHand >>> ENTRY_BITS > 1);
    }
    return taken;
  }

  /** Forgets the blocks of one page with ids from `first` to `end`, each of which is here. */
  removeRun(first: number, end: number): void {
    const words = this.#words;
    let at = hashAt(first);
    if (this.#isFar) this.#readAheadOfPage(at, at + 2 * (end - first));
    for (let id = first; id < end; id++, at += 2) this.#take(words[at], words[at + 1], id);
  }

  #home(lo: number): number {
    const group = Math.imul(lo >>> GROUP_BITS, this.#groups) >>> (32 - GROUP_BITS);
    return (group << this.#groupBits) | (lo & this.#groupMask);
  }

  #tag(hi: number): number {
    return (hi & this.#tagMask) << this.#idBits;
  }

  /** Removes a block; whoever behind it is not at home moves one nearer to it. */
  #take(lo: number, hi: number, id: number): void {
    const slots = this.#slots;
    let slot = this.#home(lo);
    let want = ONE_FURTHER | this.#tag(hi) | id;
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
    let seen = 0;
    for (let i = from; i < to; i += 2) seen ^= slots[this.#home(sequence[i] | 0)];
    this.readAhead = seen;
  }

  /** The same for hashes that lie in a page. */
  #readAheadOfPage(from: number, to: number): void {
    const slots = this.#slots;
    const words = this.#words;
    let seen = 0;
    for (let i = from; i < to; i += 2) seen ^= slots[this.#home(words[i])];
    this.readAhead = seen;
  }
}
