import { WarmpathError } from "../errors.ts";
import { hashAt } from "./page-layout.ts";

const MAX_LOAD = 0.88;
/**
 * A slot is 1 + the distance from home in the upper 6 bits, and below it the block's id with a tag from its hash in
 * whatever bits the ids leave free; 0 is an empty slot.
 */
const ENTRY_BITS = 26;
const ENTRY_MASK = (1 << ENTRY_BITS) - 1;
const ONE_FURTHER = 1 << ENTRY_BITS;
const MAX_DISTANCE = 63;

/**
 * Finds a block by its sequence hash: Robin Hood hashing, four bytes a slot. The hashes themselves stay in the pages. The
 * distance tells which home a slot belongs to, and the tag which of its blocks it may be, so a probe hardly ever reads a
 * page in vain, and a removal shifts its followers back without reading pages at all.
 */
export class BlockTable {
  readonly #slots: Int32Array;
  readonly #words: Int32Array;
  readonly #scale: number;
  readonly #idBits: number;
  readonly #idMask: number;
  readonly #tagMask: number;
  /** What was read ahead; kept so that no compiler finds the reading useless. */
  readAhead = 0;

  /** `words` holds the `[lo, hi]` lanes of a block at `hashAt(id)`. */
  constructor(maxBlocks: number, words: Int32Array) {
    if (maxBlocks > ENTRY_MASK) {
      throw new WarmpathError("WP_CAPACITY_EXCEEDED", `maxBlocks is ${maxBlocks}, the index can hold ${ENTRY_MASK}`);
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

  /** Reads the homes of hashes that are about to be asked for: side by side, memory answers much sooner than in turn. */
  prefetch(sequence: Uint32Array, from: number, to: number): void {
    const slots = this.#slots;
    const scale = this.#scale;
    let seen = 0;
    for (let i = from; i < to; i += 2) seen ^= slots[((sequence[i] >>> 0) * scale) | 0];
    this.readAhead = seen;
  }

  /** The same for the hashes of blocks from `first` to `end` of one page. */
  prefetchBlocks(first: number, end: number): void {
    const slots = this.#slots;
    const words = this.#words;
    const scale = this.#scale;
    let seen = 0;
    let at = hashAt(first);
    for (let block = first; block < end; block++, at += 2) seen ^= slots[((words[at] >>> 0) * scale) | 0];
    this.readAhead = seen;
  }

  /** The block's id, or -1. */
  find(lo: number, hi: number): number {
    const slots = this.#slots;
    const words = this.#words;
    const tag = (hi & this.#tagMask) << this.#idBits;
    let slot = ((lo >>> 0) * this.#scale) | 0;
    for (let want = ONE_FURTHER | tag; ; want = (want + ONE_FURTHER) | 0, slot++) {
      const word = slots[slot];
      if (word >>> ENTRY_BITS < want >>> ENTRY_BITS) return -1;
      if (((word ^ want) & ~this.#idMask) !== 0) continue;
      const id = word & this.#idMask;
      const at = hashAt(id);
      if (words[at] === lo && words[at + 1] === hi) return id;
    }
  }

  /**
   * Returns the id of a block with this hash, or takes `newId` for it and returns -1. A table this size fills up only
   * under hashes made to collide; the block that finds no place is then simply not found again, which an index may do.
   */
  findOrInsert(lo: number, hi: number, newId: number): number {
    const slots = this.#slots;
    const words = this.#words;
    const idMask = this.#idMask;
    const tag = (hi & this.#tagMask) << this.#idBits;
    // Both loops step before they look, and both lanes are compared at once: the first calls meet an almost empty table, and
    // what they have not run is missing in the code that is compiled after them.
    let slot = (((lo >>> 0) * this.#scale) | 0) - 1;
    let want = tag;
    for (;;) {
      want = (want + ONE_FURTHER) | 0;
      const word = slots[++slot];
      if (word >>> ENTRY_BITS < want >>> ENTRY_BITS) break;
      if (((word ^ want) & ~idMask) !== 0) continue;
      const id = word & idMask;
      const at = hashAt(id);
      if (((words[at] ^ lo) | (words[at + 1] ^ hi)) === 0) return id;
    }
    // From here on everybody nearer to home than the one in hand makes way for it.
    let inHand = tag | newId;
    slot--;
    for (let d = (want >>> ENTRY_BITS) - 1; d < MAX_DISTANCE;) {
      d++;
      const word = slots[++slot];
      const there = word >>> ENTRY_BITS;
      const entry = word & ENTRY_MASK;
      if (there >= d) continue;
      slots[slot] = (d << ENTRY_BITS) | inHand;
      if (word === 0) return -1;
      inHand = entry;
      d = there;
    }
    return -1;
  }

  /** Forgets a block that is known to be here under this hash. */
  remove(lo: number, hi: number, id: number): void {
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
}
