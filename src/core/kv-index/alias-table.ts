const MAX_LOAD = 0.85;
const WORDS = 4;
const EMPTY = -1;
/** How full the table may be before every set looks at some slots for aliases that are void. */
const CROWDED = 0.75;
const RECLAIM_SLOTS = 8;
/** How far a full table is searched before it refuses: a few microseconds. */
const URGENT_SLOTS = 256;

/** Whether an alias still means what it meant when it was set. */
export type AliasCheck = (replica: number, block: number, check: number) => boolean;

/**
 * Translates an engine's own block hashes into blocks of the index, for each replica apart: engines hash with secrets or
 * seeds of their own, so the same hash means different blocks on two replicas. Open addressing with Robin Hood order; an
 * entry is `[engineLo, engineHi, replica and check, block]`, 16 bytes.
 *
 * An alias can outlive its block: the block may be forgotten under the cap, or an engine may have stored it under two
 * hashes. So 16 bits of the block's own hash are kept with it, and an alias that is no longer current is dropped when it
 * is met, or when the table is full.
 */
export class AliasTable {
  readonly maxEntries: number;
  readonly #isCurrent: AliasCheck;
  readonly #words: Int32Array;
  readonly #homes: number;
  readonly #scale: number;
  #size = 0;
  #hand = 0;

  constructor(maxEntries: number, isCurrent: AliasCheck) {
    this.maxEntries = maxEntries;
    this.#isCurrent = isCurrent;
    this.#homes = Math.ceil(maxEntries / MAX_LOAD) + 1;
    this.#scale = this.#homes / 4294967296;
    this.#words = new Int32Array(this.#homes * WORDS);
    for (let at = 3; at < this.#words.length; at += WORDS) this.#words[at] = EMPTY;
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#words.byteLength;
  }

  /** The block an engine hash stands for on a replica, or -1. */
  find(replica: number, lo: number, hi: number): number {
    const slot = this.#currentSlot(replica, lo, hi);
    return slot < 0 ? -1 : this.#words[slot * WORDS + 3];
  }

  /** Sets or replaces an alias; `check` are 16 bits by which the block is known again. False if the table is full. */
  set(replica: number, lo: number, hi: number, block: number, check: number): boolean {
    const owner = replica | (check << 16);
    const known = this.#slotOf(replica, lo, hi);
    if (known >= 0) {
      this.#words[known * WORDS + 2] = owner;
      this.#words[known * WORDS + 3] = block;
      return true;
    }
    // A little at every set while room is short, so that nobody has to wait for all of it.
    if (this.#size > this.maxEntries * CROWDED) this.#reclaim(RECLAIM_SLOTS);
    if (this.#size >= this.maxEntries && !this.#reclaim(URGENT_SLOTS)) return false;
    this.#size++;
    this.#insert(owner, lo, hi, block);
    return true;
  }

  /** Removes an alias and returns the block it stood for, or -1. */
  take(replica: number, lo: number, hi: number): number {
    const slot = this.#currentSlot(replica, lo, hi);
    if (slot < 0) return -1;
    const block = this.#words[slot * WORDS + 3];
    this.#removeSlot(slot);
    return block;
  }

  /** Removes every alias of a replica that is not current. A full pass, for rare events. */
  sweep(replica: number): void {
    const words = this.#words;
    // Removal pulls followers back, past the end of the array too, so a first pass may move an entry behind the cursor.
    for (let passes = 0; passes < 2; passes++) {
      for (let slot = 0; slot < this.#homes;) {
        const at = slot * WORDS;
        const isIts = words[at + 3] !== EMPTY && (words[at + 2] & 0xffff) === replica;
        if (isIts && !this.#isCurrentAt(slot)) this.#removeSlot(slot);
        else slot++;
      }
    }
  }

  /** Calls `visit` with every current alias of a replica. A full pass, for snapshots. */
  forEachOf(replica: number, visit: (lo: number, hi: number, block: number) => void): void {
    const words = this.#words;
    for (let slot = 0; slot < this.#homes; slot++) {
      const at = slot * WORDS;
      if (words[at + 3] === EMPTY || (words[at + 2] & 0xffff) !== replica || !this.#isCurrentAt(slot)) continue;
      visit(words[at], words[at + 1], words[at + 3]);
    }
  }

  /** Looks at some slots from where it last stopped and drops what is not current; true if that made room. */
  #reclaim(slots: number): boolean {
    const before = this.#size;
    for (let looked = 0; looked < slots; looked++) {
      if (this.#hand >= this.#homes) this.#hand = 0;
      if (this.#words[this.#hand * WORDS + 3] !== EMPTY && !this.#isCurrentAt(this.#hand)) this.#removeSlot(this.#hand);
      else this.#hand++;
    }
    return this.#size < before;
  }

  #isCurrentAt(slot: number): boolean {
    const owner = this.#words[slot * WORDS + 2];
    return this.#isCurrent(owner & 0xffff, this.#words[slot * WORDS + 3], owner >>> 16);
  }

  /** The slot of an alias that still holds, or -1; one that does not is dropped on the way. */
  #currentSlot(replica: number, lo: number, hi: number): number {
    const slot = this.#slotOf(replica, lo, hi);
    if (slot < 0 || this.#isCurrentAt(slot)) return slot;
    this.#removeSlot(slot);
    return -1;
  }

  #home(replica: number, lo: number, hi: number): number {
    const mixed = Math.imul(lo ^ Math.imul(replica + 1, 0x9e3779b1), 0x85ebca6b) ^ hi;
    return ((Math.imul(mixed ^ (mixed >>> 15), 0xc2b2ae35) >>> 0) * this.#scale) | 0;
  }

  #distanceAt(slot: number): number {
    const at = slot * WORDS;
    const words = this.#words;
    const distance = slot - this.#home(words[at + 2] & 0xffff, words[at], words[at + 1]);
    return distance < 0 ? distance + this.#homes : distance;
  }

  #slotOf(replica: number, lo: number, hi: number): number {
    const words = this.#words;
    let slot = this.#home(replica, lo, hi);
    for (let d = 0; ; d++) {
      const at = slot * WORDS;
      if (words[at + 3] === EMPTY) return -1;
      if (words[at] === lo && words[at + 1] === hi && (words[at + 2] & 0xffff) === replica) return slot;
      // Robin Hood order: behind an entry closer to its home than we are to ours, ours cannot be.
      if (this.#distanceAt(slot) < d) return -1;
      if (++slot === this.#homes) slot = 0;
    }
  }

  #insert(owner: number, lo: number, hi: number, block: number): void {
    const words = this.#words;
    let slot = this.#home(owner & 0xffff, lo, hi);
    for (let d = 0; ; d++) {
      const at = slot * WORDS;
      const there = words[at + 3] === EMPTY ? -1 : this.#distanceAt(slot);
      if (there < d) {
        const [oldLo, oldHi, oldOwner, oldBlock] = [words[at], words[at + 1], words[at + 2], words[at + 3]];
        words[at] = lo;
        words[at + 1] = hi;
        words[at + 2] = owner;
        words[at + 3] = block;
        if (there < 0) return;
        lo = oldLo;
        hi = oldHi;
        owner = oldOwner;
        block = oldBlock;
        d = there;
      }
      if (++slot === this.#homes) slot = 0;
    }
  }

  #removeSlot(slot: number): void {
    const words = this.#words;
    for (;;) {
      const next = slot + 1 === this.#homes ? 0 : slot + 1;
      const at = slot * WORDS;
      const nextAt = next * WORDS;
      if (words[nextAt + 3] === EMPTY || this.#distanceAt(next) === 0) {
        words[at + 3] = EMPTY;
        this.#size--;
        return;
      }
      words[at] = words[nextAt];
      words[at + 1] = words[nextAt + 1];
      words[at + 2] = words[nextAt + 2];
      words[at + 3] = words[nextAt + 3];
      slot = next;
    }
  }
}
