import type { Nanoseconds } from "../clock.ts";
import { bitCount, lowestBit, lowestBits } from "./block-mask.ts";
import { Expectations } from "./expectations.ts";
import * as layout from "./page-layout.ts";
import { PageStore } from "./page-store.ts";
import { PairTable } from "./pair-table.ts";

const { CHUNK_WORDS, FIRST_HOLDER, LINK, PAGE_BLOCKS, PAGE_HOLDERS_END, commonBlocks, hashAt, headerAt } = layout;
const NONE = -1;
const EVICTED_AT_ONCE = 8;

export interface EvidenceSizes {
  readonly maxPages: number;
  readonly maxChunks: number;
  readonly maxExpectations: number;
  readonly maxCopies: number;
  readonly lanes: number;
  readonly isSparse: boolean;
}

/**
 * Who holds which block, and by what evidence. Blocks of one page are always changed together, as a mask: the bookkeeping
 * is then paid once for up to 16 blocks.
 */
export class Evidence {
  readonly store: PageStore;
  readonly expectations: Expectations;
  readonly #copies: PairTable;
  #blocks = 0;
  #evictedPages = 0;
  #refusedCopies = 0;

  constructor(sizes: EvidenceSizes) {
    this.store = new PageStore(sizes.maxPages, sizes.maxChunks, sizes.isSparse);
    this.expectations = new Expectations(sizes.maxExpectations, sizes.lanes);
    this.#copies = new PairTable(sizes.maxCopies);
  }

  /** Distinct blocks that some lane holds. */
  get blocks(): number {
    return this.#blocks;
  }

  get evictedPages(): number {
    return this.#evictedPages;
  }

  /** Copies that could not be counted: such a block is believed gone when its first copy goes. */
  get refusedCopies(): number {
    return this.#refusedCopies;
  }

  get bytes(): number {
    return this.store.bytes + this.expectations.bytes + this.#copies.bytes;
  }

  /**
   * How many blocks of a chain, from `from` on, follow `block` inside its page: those that are there already, or else as
   * many as can be appended to it.
   */
  extend(block: number, sequence: Uint32Array, from: number, to: number): number {
    const { store } = this;
    const { words, table } = store;
    const page = block >> 4;
    const first = (block & 15) + 1;
    const used = store.used(page);
    const most = Math.min(to - from, PAGE_BLOCKS - first);
    const known = Math.min(most, used - first);
    const same = known > 0 ? commonBlocks(words, hashAt(block) + 2, sequence, 2 * from, known) : 0;
    if (same < known || same === most) return same;
    // A block further on may be in a page of its own, from before its parent was known.
    const added = same + table.insertRun(sequence, from + same, most - same, block + 1 + same);
    store.setUsed(page, first + added);
    return added;
  }

  /** Block `from` of a chain wherever it is, or the first of a new page, with what follows it; -1 only if no page can be had. */
  findOrStart(sequence: Uint32Array, from: number, to: number): number {
    const { store } = this;
    const known = store.table.find(sequence[2 * from] | 0, sequence[2 * from + 1] | 0);
    if (known !== NONE) return known;
    let page = store.takePage();
    if (page === NONE) {
      this.makeRoom(NONE);
      page = store.takePage();
      if (page === NONE) return NONE;
    }
    const block = page * PAGE_BLOCKS;
    store.setUsed(page, store.table.insertRun(sequence, from, Math.min(to - from, PAGE_BLOCKS), block));
    return block;
  }

  /** An event says that the lane holds these blocks; blocks it already held gain a copy. False if there is no room. */
  confirm(page: number, lane: number, bits: number): boolean {
    const words = this.store.words;
    const at = this.#holder(page, lane, bits);
    if (at === NONE) return false;
    const before = words[at + 1];
    const again = before & bits;
    const expected = (before >>> 16) & bits;
    words[at + 1] = (before | bits) & ~(expected << 16);
    this.expectations.remove(lane, page, expected);
    for (let rest = again; rest !== 0; rest &= rest - 1) {
      const block = page * PAGE_BLOCKS + lowestBit(rest);
      const copies = Math.max(0, this.#copies.get(lane, block)) + 1;
      if (!this.#copies.set(lane, block, copies)) this.#refusedCopies++;
    }
    return true;
  }

  /** We placed a prompt with these blocks on the lane: those it holds for certain are left alone. False if there is no room. */
  expect(page: number, lane: number, bits: number, expiresNs: Nanoseconds): boolean {
    const at = this.#holder(page, lane, bits);
    if (at === NONE) return false;
    const { expectations } = this;
    const masks = this.store.words[at + 1];
    const known = (masks >>> 16) & bits;
    let fresh = bits & ~(masks | known);
    if (expectations.free < PAGE_BLOCKS) fresh = lowestBits(fresh, Math.min(bitCount(fresh), expectations.free));
    expectations.put(lane, page, known | fresh, fresh, expiresNs);
    this.store.words[at + 1] = masks | (fresh << 16);
    const refused = bits & ~(masks | known | fresh);
    // What `#holder` counted as newly held but the full book refused is taken back.
    if (refused !== 0) this.#forget(page, lane, at, refused);
    return refused === 0;
  }

  /** The lane lost one confirmed or expected block of those in `bits` each; returns the bits it did not hold. */
  withdraw(page: number, lane: number, bits: number): number {
    const at = this.store.holderOf(page, lane);
    if (at === NONE) return bits;
    const masks = this.store.words[at + 1];
    let clear = bits & (masks | (masks >>> 16));
    const unknown = bits & ~clear;
    if (this.#copies.size > 0) {
      for (let rest = clear & masks; rest !== 0; rest &= rest - 1) {
        const block = page * PAGE_BLOCKS + lowestBit(rest);
        const extra = this.#copies.get(lane, block);
        if (extra <= 0) continue;
        if (extra === 1) this.#copies.take(lane, block);
        else this.#copies.set(lane, block, extra - 1);
        clear &= ~(rest & -rest);
      }
    }
    this.#forget(page, lane, at, clear);
    return unknown;
  }

  /** Makes those of the blocks that the lane is expected to hold its most recent ones. */
  renew(page: number, lane: number, bits: number, expiresNs: Nanoseconds): void {
    const at = this.store.holderOf(page, lane);
    if (at !== NONE) this.expectations.put(lane, page, (this.store.words[at + 1] >>> 16) & bits, 0, expiresNs);
  }

  /** Ends one expectation of a lane, if there is one. */
  retract(lane: number, block: number): void {
    const page = block >> 4;
    const at = this.store.holderOf(page, lane);
    if (at !== NONE) this.#forget(page, lane, at, (this.store.words[at + 1] >>> 16) & (1 << (block & 15)));
  }

  /** Whether the lane holds a block by confirmed evidence. */
  isConfirmed(lane: number, block: number): boolean {
    const at = this.store.holderOf(block >> 4, lane);
    return at !== NONE && ((this.store.words[at + 1] >>> (block & 15)) & 1) === 1;
  }

  /** Forgets all that a lane holds, copies included. A pass over all pages, for rare events. */
  clearLane(lane: number): void {
    for (let page = 0; page < this.store.maxPages; page++) {
      if (this.store.used(page) === 0) continue;
      const at = this.store.holderOf(page, lane);
      if (at === NONE) continue;
      const masks = this.store.words[at + 1];
      this.#dropCopies(page, lane, masks & 0xffff);
      this.#forget(page, lane, at, (masks | (masks >>> 16)) & 0xffff);
    }
  }

  /** Ends the expectations of a lane that have expired. */
  expireLane(lane: number, nowNs: Nanoseconds): void {
    for (;;) {
      const entry = this.expectations.expiredOf(lane, nowNs);
      if (entry === NONE) return;
      this.#endExpectations(lane, entry, this.expectations.maskOf(entry));
    }
  }

  /** Ends a lane's least recent expectations until at most `count` blocks are left. */
  shrinkLane(lane: number, count: number): void {
    for (let more = this.expectations.countOf(lane) - count; more > 0; more = this.expectations.countOf(lane) - count) {
      const entry = this.expectations.oldestOf(lane);
      this.#endExpectations(lane, entry, this.expectations.leastRecentOf(entry, more));
    }
  }

  /** Frees what a page holds for nobody: blocks that were made but found no evidence. */
  tidy(page: number): void {
    const used = this.store.used(page);
    if (used === 0) return;
    const held = this.store.heldMask(page);
    if (held >>> (used - 1) === 0) this.store.trim(page, held);
  }

  /** The lane's holder in a page, made if need be; counts blocks in `bits` that nobody held. */
  #holder(page: number, lane: number, bits: number): number {
    const words = this.store.words;
    let group = headerAt(page);
    let end = group + PAGE_HOLDERS_END;
    let union = 0;
    let mine = NONE;
    for (;;) {
      for (let at = group + FIRST_HOLDER; at < end; at += 2) {
        union |= words[at + 1];
        if (words[at] === lane && words[at + 1] !== 0) mine = at;
      }
      group = words[group + LINK];
      if (group === 0) break;
      end = group + CHUNK_WORDS;
    }
    if (mine === NONE) {
      mine = this.store.addHolder(page, lane);
      if (mine === NONE) {
        const crowded = this.store.crowdedVictim(page);
        if (crowded === NONE) return NONE;
        this.#evict(crowded);
        mine = this.store.addHolder(page, lane);
      }
    }
    this.#blocks += bitCount(bits & ~(union | (union >>> 16)) & 0xffff);
    return mine;
  }

  #endExpectations(lane: number, entry: number, bits: number): void {
    const page = this.expectations.pageOf(entry);
    this.#forget(page, lane, this.store.holderOf(page, lane), bits);
  }

  /** Clears both kinds of evidence for `bits`, and whatever is then held by nobody. */
  #forget(page: number, lane: number, at: number, bits: number): void {
    if (bits === 0) return;
    const store = this.store;
    const masks = store.words[at + 1];
    this.expectations.remove(lane, page, (masks >>> 16) & bits);
    store.words[at + 1] = masks & ~(bits | (bits << 16));
    const held = store.heldMask(page);
    this.#blocks -= bitCount(bits & ~held);
    if (held >>> (store.used(page) - 1) === 0) store.trim(page, held);
    else if (store.isInChunk(at)) store.compactHolders(page);
  }

  #dropCopies(page: number, lane: number, bits: number): void {
    if (this.#copies.size === 0) return;
    for (let rest = bits; rest !== 0; rest &= rest - 1) this.#copies.take(lane, page * PAGE_BLOCKS + lowestBit(rest));
  }

  /** Forgets a few pages that were not used lately; never many, since somebody waits for the room. */
  makeRoom(pinnedPage: number): void {
    for (let left = Math.min(EVICTED_AT_ONCE, this.store.maxPages >> 2); left >= 0; left--) {
      const page = this.store.victim(pinnedPage);
      if (page === NONE) return;
      this.#evict(page);
    }
  }

  #evict(page: number): void {
    const { store } = this;
    this.#blocks -= bitCount(store.heldMask(page));
    store.forEachHolder(page, (at) => {
      const lane = store.words[at];
      const masks = store.words[at + 1];
      this.expectations.remove(lane, page, masks >>> 16);
      this.#dropCopies(page, lane, masks & 0xffff);
    });
    store.freePage(page);
    this.#evictedPages++;
  }
}
