import { BlockTable } from "./block-table.ts";

export const PAGE_BLOCKS = 16;
const HOLDER_WORDS = 3;
const NONE = -1;

/**
 * Blocks in pages of up to 16 consecutive ones of a chain. A block's id is `16 * page + offset`. Prompts that part ways
 * inside a page part into a new page, so a page never branches, and a match reads one table slot and one bit mask per
 * page and lane instead of one per block.
 *
 * Who holds what is a short linked list per page of `[lane, masks, next]`: the lower 16 bits of `masks` are confirmed
 * blocks, the upper 16 expected ones. Pages are linked by recency of use. All memory is allocated in the constructor.
 */
export class PageStore {
  readonly maxPages: number;
  /** `[lo, hi]` of block `id` at `2 * id`. */
  readonly hashes: Int32Array;
  /** Blocks in use in a page; 0 for a free one. */
  readonly used: Uint8Array;
  /** First holder of a page, as an index into `holders`, or -1. */
  readonly firstHolder: Int32Array;
  readonly holders: Int32Array;
  readonly table: BlockTable;
  /** Sequence hash of the block before a page's first, `[lo, hi]` at `2 * page`. */
  readonly parents: Int32Array;

  readonly #older: Int32Array;
  readonly #newer: Int32Array;
  #oldest = NONE;
  #newest = NONE;
  #freePage: number;
  #freeHolder: number;
  #pages = 0;

  constructor(maxPages: number, maxHolders: number) {
    this.maxPages = maxPages;
    this.hashes = new Int32Array(maxPages * PAGE_BLOCKS * 2);
    this.used = new Uint8Array(maxPages);
    this.firstHolder = new Int32Array(maxPages).fill(NONE);
    this.holders = new Int32Array(maxHolders * HOLDER_WORDS);
    this.parents = new Int32Array(maxPages * 2);
    this.table = new BlockTable(maxPages * PAGE_BLOCKS, this.hashes);
    this.#older = new Int32Array(maxPages);
    this.#newer = new Int32Array(maxPages);
    // Free pages and free holders are chained through fields that only used ones need.
    for (let page = 0; page < maxPages; page++) this.#newer[page] = page + 1 < maxPages ? page + 1 : NONE;
    this.#freePage = maxPages > 0 ? 0 : NONE;
    for (let at = 0; at < this.holders.length; at += HOLDER_WORDS) {
      this.holders[at + 2] = at + HOLDER_WORDS < this.holders.length ? at + HOLDER_WORDS : NONE;
    }
    this.#freeHolder = maxHolders > 0 ? 0 : NONE;
  }

  get pages(): number {
    return this.#pages;
  }

  get bytes(): number {
    let bytes = this.table.bytes;
    for (const array of [this.hashes, this.used, this.firstHolder, this.holders, this.parents])
      bytes += array.byteLength;
    return bytes + this.#older.byteLength + this.#newer.byteLength;
  }

  get oldest(): number {
    return this.#oldest;
  }

  newerThan(page: number): number {
    return this.#newer[page];
  }

  /** A new empty page as the most recently used one, or -1 if all are taken. */
  takePage(parentLo: number, parentHi: number): number {
    const page = this.#freePage;
    if (page === NONE) return NONE;
    this.#freePage = this.#newer[page];
    this.parents[2 * page] = parentLo;
    this.parents[2 * page + 1] = parentHi;
    this.firstHolder[page] = NONE;
    this.#pages++;
    this.#linkNewest(page);
    return page;
  }

  /** Gives a page back with all its blocks; its holders must be gone. */
  freePage(page: number): void {
    const first = page * PAGE_BLOCKS;
    for (let offset = this.used[page] - 1; offset >= 0; offset--) {
      this.table.remove(this.hashes[2 * (first + offset)], first + offset);
    }
    this.used[page] = 0;
    this.#unlink(page);
    this.#newer[page] = this.#freePage;
    this.#freePage = page;
    this.#pages--;
  }

  /** Makes a page the most recently used. */
  touch(page: number): void {
    if (page === this.#newest) return;
    this.#unlink(page);
    this.#linkNewest(page);
  }

  /** The holder entry of a lane in a page, or -1. */
  holderOf(page: number, lane: number): number {
    const holders = this.holders;
    let at = this.firstHolder[page];
    while (at !== NONE && holders[at] !== lane) at = holders[at + 2];
    return at;
  }

  /** Adds an empty holder entry for a lane that has none, or returns -1 if the pool is exhausted. */
  addHolder(page: number, lane: number): number {
    const at = this.#freeHolder;
    if (at === NONE) return NONE;
    this.#freeHolder = this.holders[at + 2];
    this.holders[at] = lane;
    this.holders[at + 1] = 0;
    this.holders[at + 2] = this.firstHolder[page];
    this.firstHolder[page] = at;
    return at;
  }

  removeHolder(page: number, lane: number): void {
    const holders = this.holders;
    let before = NONE;
    let at = this.firstHolder[page];
    while (at !== NONE && holders[at] !== lane) {
      before = at;
      at = holders[at + 2];
    }
    if (at === NONE) return;
    if (before === NONE) this.firstHolder[page] = holders[at + 2];
    else holders[before + 2] = holders[at + 2];
    holders[at + 2] = this.#freeHolder;
    this.#freeHolder = at;
  }

  /** The blocks of a page that any lane holds, confirmed or expected, as a mask. */
  heldMask(page: number): number {
    const holders = this.holders;
    let masks = 0;
    for (let at = this.firstHolder[page]; at !== NONE; at = holders[at + 2]) masks |= holders[at + 1];
    return (masks | (masks >>> 16)) & 0xffff;
  }

  /** Drops blocks from the end of a page that nobody holds any more, and the page itself when none is left. */
  trim(page: number, heldMask: number): void {
    const keep = 32 - Math.clz32(heldMask);
    if (keep === 0) {
      this.freePage(page);
      return;
    }
    const first = page * PAGE_BLOCKS;
    for (let offset = this.used[page] - 1; offset >= keep; offset--) {
      this.table.remove(this.hashes[2 * (first + offset)], first + offset);
    }
    this.used[page] = keep;
  }

  #linkNewest(page: number): void {
    this.#older[page] = this.#newest;
    this.#newer[page] = NONE;
    if (this.#newest === NONE) this.#oldest = page;
    else this.#newer[this.#newest] = page;
    this.#newest = page;
  }

  #unlink(page: number): void {
    const older = this.#older[page];
    const newer = this.#newer[page];
    if (older === NONE) this.#oldest = newer;
    else this.#newer[older] = newer;
    if (newer === NONE) this.#newest = older;
    else this.#older[newer] = older;
  }
}
