const MAX_LOAD = 0.85;
const WORDS = 4;
const EMPTY = -1;

/**
 * Translates an engine's own block hashes into blocks of the index, for each replica apart: engines hash with secrets or
 * seeds of their own, so the same hash means different blocks on two replicas. Open addressing with Robin Hood order; an
 * entry is `[engineLo, engineHi, replica, block]`, 16 bytes.
 */
export class AliasTable {
  readonly maxEntries: number;
  readonly #words: Int32Array;
  readonly #homes: number;
  readonly #scale: number;
  #size = 0;

  constructor(maxEntries: number) {
    this.maxEntries = maxEntries;
    this.#homes = Math.ceil(maxEntries / MAX_LOAD) + 1;
    this.#scale = this.#homes / 4294967296;
    this.#words = new Int32Array(this.#homes * WORDS);
    for (let at = 2; at < this.#words.length; at += WORDS) this.#words[at] = EMPTY;
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#words.byteLength;
  }

  /** The block an engine hash stands for on a replica, or -1. */
  find(replica: number, lo: number, hi: number): number {
    const slot = this.#slotOf(replica, lo, hi);
    return slot < 0 ? -1 : this.#words[slot * WORDS + 3];
  }

  /** Sets or replaces an alias; false if the table is full. */
  set(replica: number, lo: number, hi: number, block: number): boolean {
    const known = this.#slotOf(replica, lo, hi);
    if (known >= 0) {
      this.#words[known * WORDS + 3] = block;
      return true;
    }
    if (this.#size >= this.maxEntries) return false;
    this.#size++;
    this.#insert(replica, lo, hi, block);
    return true;
  }

  /** Removes an alias and returns the block it stood for, or -1. */
  take(replica: number, lo: number, hi: number): number {
    const slot = this.#slotOf(replica, lo, hi);
    if (slot < 0) return -1;
    const block = this.#words[slot * WORDS + 3];
    this.#removeSlot(slot);
    return block;
  }

  /** Removes every alias for which `unwanted` says so. A full pass, for rare events. */
  sweep(unwanted: (replica: number, block: number) => boolean): void {
    const words = this.#words;
    // Removal pulls followers back, past the end of the array too, so a first pass may move an entry behind the cursor.
    for (let passes = 0; passes < 2; passes++) {
      for (let slot = 0; slot < this.#homes;) {
        const at = slot * WORDS;
        if (words[at + 2] !== EMPTY && unwanted(words[at + 2], words[at + 3])) this.#removeSlot(slot);
        else slot++;
      }
    }
  }

  /** Calls `visit` with every alias of a replica. A full pass, for snapshots. */
  forEachOf(replica: number, visit: (lo: number, hi: number, block: number) => void): void {
    const words = this.#words;
    for (let at = 0; at < words.length; at += WORDS) {
      if (words[at + 2] === replica) visit(words[at], words[at + 1], words[at + 3]);
    }
  }

  #home(replica: number, lo: number, hi: number): number {
    const mixed = Math.imul(lo ^ Math.imul(replica + 1, 0x9e3779b1), 0x85ebca6b) ^ hi;
    return ((Math.imul(mixed ^ (mixed >>> 15), 0xc2b2ae35) >>> 0) * this.#scale) | 0;
  }

  #distanceAt(slot: number): number {
    const at = slot * WORDS;
    const words = this.#words;
    const distance = slot - this.#home(words[at + 2], words[at], words[at + 1]);
    return distance < 0 ? distance + this.#homes : distance;
  }

  #slotOf(replica: number, lo: number, hi: number): number {
    const words = this.#words;
    let slot = this.#home(replica, lo, hi);
    for (let d = 0; ; d++) {
      const at = slot * WORDS;
      if (words[at + 2] === EMPTY) return -1;
      if (words[at] === lo && words[at + 1] === hi && words[at + 2] === replica) return slot;
      // Robin Hood order: behind an entry closer to its home than we are to ours, ours cannot be.
      if (this.#distanceAt(slot) < d) return -1;
      if (++slot === this.#homes) slot = 0;
    }
  }

  #insert(replica: number, lo: number, hi: number, block: number): void {
    const words = this.#words;
    let slot = this.#home(replica, lo, hi);
    let d = 0;
    for (;;) {
      const at = slot * WORDS;
      if (words[at + 2] === EMPTY) {
        words[at] = lo;
        words[at + 1] = hi;
        words[at + 2] = replica;
        words[at + 3] = block;
        return;
      }
      const there = this.#distanceAt(slot);
      if (there < d) {
        const [oldLo, oldHi, oldReplica, oldBlock] = [words[at], words[at + 1], words[at + 2], words[at + 3]];
        words[at] = lo;
        words[at + 1] = hi;
        words[at + 2] = replica;
        words[at + 3] = block;
        lo = oldLo;
        hi = oldHi;
        replica = oldReplica;
        block = oldBlock;
        d = there;
      }
      d++;
      if (++slot === this.#homes) slot = 0;
    }
  }

  #removeSlot(slot: number): void {
    const words = this.#words;
    for (;;) {
      const next = slot + 1 === this.#homes ? 0 : slot + 1;
      const at = slot * WORDS;
      const nextAt = next * WORDS;
      if (words[nextAt + 2] === EMPTY || this.#distanceAt(next) === 0) {
        words[at + 2] = EMPTY;
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
