import { BlockTable } from "./block-table.ts";
import * as layout from "./page-layout.ts";

const {
  CHUNK_WORDS,
  FIRST_HOLDER,
  FOLLOWER_SHIFT,
  LINK,
  PAGE_BLOCKS,
  PAGE_HOLDERS_END,
  REFERENCED,
  USED,
  headerAt,
  pageAt,
} = layout;
const NONE = -1;
/** How far the hand looks for a page with chunks before the holder that needs one is refused. */
const CROWDED_STEPS = 256;

/**
 * Blocks in pages of up to 16 consecutive ones of a chain; a block's id is `16 * page + offset`. Prompts that part ways
 * inside a page part into a new page, so a page never branches, and a match reads one table slot and one bit mask per
 * page and lane instead of one per block.
 *
 * A page is 160 adjacent bytes: how many blocks it has, who holds them, and their hashes. A holder is `[lane, masks]`: the
 * lower 16 bits of `masks` are confirmed blocks, the upper 16 expected ones, and 0 is an empty place. Three holders fit
 * into the page; more are in linked chunks of seven. What must be forgotten under the cap is chosen by a clock hand that
 * passes over pages used since it last came by (least recently used with a second chance): exact recency order would
 * cost four more cache lines for every page a match reads. All memory is allocated in the constructor.
 */
export class PageStore {
  readonly maxPages: number;
  readonly words: Int32Array;
  readonly table: BlockTable;

  readonly #maxChunks: number;
  #pages = 0;
  #chunks = 0;
  #freePage = 0;
  #freeChunk = 0;
  #hand = 0;

  constructor(maxPages: number, maxChunks: number, isSparse: boolean) {
    this.maxPages = maxPages;
    this.#maxChunks = maxChunks;
    this.words = new Int32Array(pageAt(maxPages) + maxChunks * CHUNK_WORDS);
    this.table = new BlockTable(maxPages * PAGE_BLOCKS, this.words, isSparse);
    // Free pages are chained through their first hash, so that a free page reads as one without holders; free chunks
    // through their links, where 0, which no chunk can be, ends the chain.
    for (let page = 0; page < maxPages; page++) {
      this.words[pageAt(page)] = page + 1 < maxPages ? page + 1 : NONE;
    }
    const firstChunk = pageAt(maxPages);
    for (let at = firstChunk; at < this.words.length; at += CHUNK_WORDS) {
      this.words[at + LINK] = at + CHUNK_WORDS < this.words.length ? at + CHUNK_WORDS : 0;
    }
    this.#freeChunk = maxChunks > 0 ? firstChunk : 0;
    this.#freePage = maxPages > 0 ? 0 : NONE;
  }

  get pages(): number {
    return this.#pages;
  }

  /** Chunks of holders in use, of those beyond the three in each page. */
  get chunks(): number {
    return this.#chunks;
  }

  get maxChunks(): number {
    return this.#maxChunks;
  }

  get bytes(): number {
    return this.words.byteLength + this.table.bytes;
  }

  /** Blocks in a page; 0 for a free one. */
  used(page: number): number {
    return this.words[headerAt(page)] & USED;
  }

  setUsed(page: number, blocks: number): void {
    this.words[headerAt(page)] = (this.words[headerAt(page)] & ~USED) | blocks;
  }

  /** Keeps the clock hand off a page for one more round. New pages lie behind the hand and are safe for one anyway. */
  touch(page: number): void {
    this.words[headerAt(page)] |= REFERENCED;
  }

  /** The page that followed this one in the last match, or -1; it may have been given to other blocks since. */
  follower(page: number): number {
    return (this.words[headerAt(page)] >>> FOLLOWER_SHIFT) - 1;
  }

  setFollower(page: number, follower: number): void {
    const at = headerAt(page);
    this.words[at] = (this.words[at] & (USED | REFERENCED)) | ((follower + 1) << FOLLOWER_SHIFT);
  }

  /** A new empty page, or -1 if all are taken. */
  takePage(): number {
    const page = this.#freePage;
    if (page === NONE) return NONE;
    this.#freePage = this.words[pageAt(page)];
    this.#pages++;
    return page;
  }

  /** Gives a page back with its blocks and whatever holders it has left. */
  freePage(page: number): void {
    this.trim(page, 0);
  }

  /** The next page the clock hand finds unused since its last round, or -1 if there is none but `pinnedPage`. */
  victim(pinnedPage: number): number {
    for (let steps = 2 * this.maxPages; steps > 0; steps--) {
      const page = this.#hand;
      this.#hand = page + 1 === this.maxPages ? 0 : page + 1;
      const at = headerAt(page);
      const flags = this.words[at];
      if ((flags & USED) === 0 || page === pinnedPage) continue;
      if ((flags & REFERENCED) === 0) return page;
      this.words[at] = flags & ~REFERENCED;
    }
    return NONE;
  }

  /**
   * A page that owns chunks and was not used since the hand last came by, among the next few, or -1: chunks are short, and
   * forgetting pages without any would not help.
   */
  crowdedVictim(pinnedPage: number): number {
    for (let steps = Math.min(CROWDED_STEPS, 2 * this.maxPages); steps > 0; steps--) {
      const page = this.#hand;
      this.#hand = page + 1 === this.maxPages ? 0 : page + 1;
      const at = headerAt(page);
      if (page === pinnedPage || this.words[at + LINK] === 0) continue;
      if ((this.words[at] & REFERENCED) === 0) return page;
      this.words[at] &= ~REFERENCED;
    }
    return NONE;
  }

  /** Address of the lane's holder in a page, or -1. */
  holderOf(page: number, lane: number): number {
    const words = this.words;
    let group = headerAt(page);
    let end = group + PAGE_HOLDERS_END;
    for (;;) {
      for (let at = group + FIRST_HOLDER; at < end; at += 2) {
        if (words[at] === lane && words[at + 1] !== 0) return at;
      }
      group = words[group + LINK];
      if (group === 0) return NONE;
      end = group + CHUNK_WORDS;
    }
  }

  /** Address of an empty place for a lane that does not hold anything of the page yet, or -1 if there is no room. */
  addHolder(page: number, lane: number): number {
    const words = this.words;
    const header = headerAt(page);
    let group = header;
    let end = group + PAGE_HOLDERS_END;
    for (;;) {
      for (let at = group + FIRST_HOLDER; at < end; at += 2) {
        if (words[at + 1] !== 0) continue;
        words[at] = lane;
        return at;
      }
      group = words[group + LINK];
      if (group === 0) break;
      end = group + CHUNK_WORDS;
    }
    const chunk = this.#freeChunk;
    if (chunk === 0) return NONE;
    this.#freeChunk = words[chunk + LINK];
    this.#chunks++;
    words.fill(0, chunk, chunk + CHUNK_WORDS);
    words[chunk + LINK] = words[header + LINK];
    words[header + LINK] = chunk;
    words[chunk + FIRST_HOLDER] = lane;
    return chunk + FIRST_HOLDER;
  }

  /** The blocks of a page that any lane holds, confirmed or expected, as a mask. */
  heldMask(page: number): number {
    const words = this.words;
    let group = headerAt(page);
    let end = group + PAGE_HOLDERS_END;
    let masks = 0;
    for (;;) {
      for (let at = group + FIRST_HOLDER + 1; at < end; at += 2) masks |= words[at];
      group = words[group + LINK];
      if (group === 0) return (masks | (masks >>> 16)) & 0xffff;
      end = group + CHUNK_WORDS;
    }
  }

  /** Calls `visit` with the address of every holder of a page. */
  forEachHolder(page: number, visit: (at: number) => void): void {
    const words = this.words;
    let end = headerAt(page) + PAGE_HOLDERS_END;
    for (let group = headerAt(page); ; end = group + CHUNK_WORDS) {
      for (let at = group + FIRST_HOLDER; at < end; at += 2) if (words[at + 1] !== 0) visit(at);
      group = words[group + LINK];
      if (group === 0) return;
    }
  }

  /** Gives back chunks in which no holder is left. */
  compactHolders(page: number): void {
    const words = this.words;
    let before = headerAt(page);
    for (let chunk = words[before + LINK]; chunk !== 0; chunk = words[before + LINK]) {
      let masks = 0;
      for (let at = chunk + FIRST_HOLDER + 1; at < chunk + CHUNK_WORDS; at += 2) masks |= words[at];
      if (masks === 0) {
        words[before + LINK] = words[chunk + LINK];
        this.#giveChunk(chunk);
      } else before = chunk;
    }
  }

  /** Drops blocks from the end of a page that nobody holds any more, and the page itself when none is left. */
  trim(page: number, heldMask: number): void {
    const keep = 32 - Math.clz32(heldMask);
    this.table.removeRun(page * PAGE_BLOCKS + keep, page * PAGE_BLOCKS + this.used(page));
    this.setUsed(page, keep);
    if (keep === 0) this.#givePage(page);
  }

  /** Whether a holder's address lies outside its page. */
  isInChunk(at: number): boolean {
    return at >= pageAt(this.maxPages);
  }

  /** Gives back a page whose blocks are gone, with whatever holders it has left. */
  #givePage(page: number): void {
    const words = this.words;
    const header = headerAt(page);
    // All its chunks go before the free ones at once. The header is passed like a chunk, so that a page without any takes the
    // same way: what is run for the first time late in a run voids the code around it.
    let last = header;
    for (let group = header; group !== 0; group = words[group + LINK]) {
      last = group;
      this.#chunks--;
    }
    this.#chunks++;
    words[last + LINK] = this.#freeChunk;
    this.#freeChunk = words[header + LINK];
    // A loop: for eight words the call of `fill` costs more than they do.
    for (let at = header; at < header + PAGE_HOLDERS_END; at++) words[at] = 0;
    words[pageAt(page)] = this.#freePage;
    this.#freePage = page;
    this.#pages--;
  }

  #giveChunk(chunk: number): void {
    this.words[chunk + LINK] = this.#freeChunk;
    this.#freeChunk = chunk;
    this.#chunks--;
  }
}
