import { NS_PER_SECOND, type Nanoseconds } from "../clock.ts";
import { ROOT_HI, ROOT_LO, chainHashes } from "../hash.ts";
import { TIERS, type Tier } from "../replica.ts";
import { AliasTable, type AliasCheck } from "./alias-table.ts";
import { CapacityEstimates } from "./capacity-estimates.ts";
import { Evidence } from "./evidence.ts";
import * as layout from "./page-layout.ts";
import type { KvEventBody, KvEvidence, KvIndexStats, Match, SnapshotRun } from "./types.ts";

const { CHUNK_WORDS, FIRST_HOLDER, LINK, PAGE_BLOCKS, PAGE_HOLDERS_END, USED, commonBlocks, hashAt, headerAt } = layout;
const NONE = -1;

export interface KvIndexOptions {
  readonly maxReplicas: number;
  /** The hard cap, in blocks; rounded up to whole pages of 16. */
  readonly maxBlocks: number;
  /** Blocks that may be held under engines' own hashes, added over all replicas; takes memory only if some speak them. */
  readonly maxAliases?: number;
  /** Chunks of seven holders, for pages that more than three lanes hold. */
  readonly maxChunks?: number;
  /**
   * Blocks that may be expected at once, added over all replicas. Events confirm what is expected within seconds, so a
   * small share of all blocks will do; a replica put in approximate mode adds room for its KV blocks.
   */
  readonly maxExpectations?: number;
  /** Blocks of which an engine may hold several copies, added over all replicas. */
  readonly maxCopies?: number;
  /** How long an expectation lives without confirmation. */
  readonly expectationNs?: Nanoseconds;
  /** A table of blocks that takes up to a megabyte more to be faster, where memory is not what matters. */
  readonly hasSparseTable?: boolean;
}

/**
 * Which replica holds which prefix. One index, two kinds of evidence per lane: expected (we placed a prompt there) and
 * confirmed (an event said so). See README.md for the structure; naive-index.ts says the same in plain maps.
 */
export class KvIndex implements KvEvidence {
  readonly maxReplicas: number;
  readonly #evidence: Evidence;
  readonly #maxBlocks: number;
  readonly #maxAliases: number;
  /** Made when the first engine with hashes of its own speaks. */
  #aliases: AliasTable | null = null;
  readonly #capacities: CapacityEstimates;
  readonly #expectationNs: Nanoseconds;
  readonly #match: { cached: Int32Array; confirmed: Int32Array };
  /** Lanes that were given evidence since they were last emptied: emptying any other is nothing, however often it is asked for. */
  readonly #isFilled: Uint8Array;
  #chain: Uint32Array = new Uint32Array(256);
  /** Blocks that the aliases of a removal stood for. */
  #aliasedBlocks: Int32Array = new Int32Array(128);
  /** Page and mask of each stretch of a placement in approximate mode; the first `#stretchNumbers` numbers count. */
  #stretches: Int32Array = new Int32Array(128);
  #stretchNumbers = 0;
  #tiersSeen = 1;
  #refusedBlocks = 0;
  #unknownRemovals = 0;

  constructor(options: KvIndexOptions) {
    const lanes = options.maxReplicas * TIERS.length;
    const maxPages = Math.ceil(options.maxBlocks / PAGE_BLOCKS);
    this.maxReplicas = options.maxReplicas;
    this.#evidence = new Evidence({
      maxPages,
      maxChunks: options.maxChunks ?? maxPages,
      maxExpectations: options.maxExpectations ?? Math.max(1024, options.maxBlocks >> 5),
      // Engines rarely hold a block twice; when more do than this, the extra copies are counted as refused.
      maxCopies: options.maxCopies ?? Math.max(64, maxPages >> 1),
      lanes,
      isSparse: options.hasSparseTable ?? false,
    });
    this.#maxBlocks = maxPages * PAGE_BLOCKS;
    this.#maxAliases = options.maxAliases ?? 2 * this.#maxBlocks;
    this.#capacities = new CapacityEstimates(options.maxReplicas);
    this.#expectationNs = options.expectationNs ?? 30 * NS_PER_SECOND;
    this.#match = { cached: new Int32Array(lanes), confirmed: new Int32Array(lanes) };
    this.#isFilled = new Uint8Array(lanes);
  }

  setApproximate(replica: number, kvBlocks: number): void {
    this.#capacities.set(replica, kvBlocks);
    // All that such replicas hold is expected, so the book must have room for what they can hold.
    this.#evidence.expectations.reserve(Math.min(this.#capacities.total(), this.#maxBlocks), this.#maxBlocks);
    this.#evidence.shrinkLane(replica, this.#capacities.of(replica));
  }

  expect(replica: number, sequence: Uint32Array, blocks: number, nowNs: Nanoseconds): void {
    const { expectations } = this.#evidence;
    const isApproximate = this.#capacities.isApproximate(replica);
    const expiresNs = isApproximate ? Infinity : nowNs + this.#expectationNs;
    // A full book makes room by the oldest expectations of the lane that has most, never by refusing what is newest.
    const missing = blocks - expectations.free;
    if (missing > 0) {
      const largest = expectations.largestLane();
      this.#evidence.shrinkLane(largest, Math.max(0, expectations.countOf(largest) - missing));
    }
    this.#stretchNumbers = 0;
    this.#mark(replica, ROOT_LO, ROOT_HI, sequence, blocks, expiresNs, null);
    if (!isApproximate) return;
    // Renewed from the last to the first, so that a prompt's first blocks are the last to be forgotten.
    for (let at = this.#stretchNumbers - 2; at >= 0; at -= 2) {
      this.#evidence.renew(this.#stretches[at], replica, this.#stretches[at + 1], expiresNs);
    }
    this.#evidence.shrinkLane(replica, this.#capacities.of(replica));
  }

  retract(replica: number, sequence: Uint32Array, from: number, to: number): void {
    for (let i = to - 1; i >= from; i--) {
      const block = this.#evidence.store.table.find(sequence[2 * i] | 0, sequence[2 * i + 1] | 0);
      if (block !== NONE) this.#evidence.retract(replica, block);
    }
  }

  apply(replica: number, tier: Tier, event: KvEventBody): void {
    const lane = this.#lane(replica, tier);
    switch (event.kind) {
      case "stored":
        this.#stored(replica, lane, event);
        return;
      case "removed":
        this.#removed(replica, lane, event.engine);
        return;
      case "cleared":
        if (this.#empty(lane)) this.#aliases?.sweep(replica);
        return;
    }
  }

  correct(replica: number, predicted: number, observed: number): void {
    if (!this.#capacities.isApproximate(replica)) return;
    this.#capacities.learn(replica, predicted, observed, this.#evidence.expectations.countOf(replica));
    this.#evidence.shrinkLane(replica, this.#capacities.of(replica));
  }

  match(sequence: Uint32Array, blocks: number): Match {
    const { cached, confirmed } = this.#match;
    const store = this.#evidence.store;
    const { words, table } = store;
    const lanes = this.#tiersSeen * this.maxReplicas;
    cached.fill(0, 0, lanes);
    confirmed.fill(0, 0, lanes);
    let before = NONE;
    for (let depth = 0; depth < blocks;) {
      let page = before === NONE ? NONE : store.follower(before);
      let offset = 0;
      let run = page === NONE ? 0 : wholePage(words, page, sequence, depth, blocks);
      if (run === 0) {
        const block = table.find(sequence[2 * depth] | 0, sequence[2 * depth + 1] | 0);
        if (block === NONE) break;
        page = block >> 4;
        offset = block & 15;
        const limit = Math.min(blocks - depth, store.used(page) - offset);
        run = commonBlocks(words, hashAt(block), sequence, 2 * depth, limit);
        if (before !== NONE && offset === 0) store.setFollower(before, page);
      }
      const end = depth + run;
      let reached = false;
      let group = headerAt(page);
      let groupEnd = group + PAGE_HOLDERS_END;
      for (;;) {
        for (let at = group + FIRST_HOLDER; at < groupEnd; at += 2) {
          const lane = words[at];
          const masks = words[at + 1];
          // A lane whose depth ends before this page has a hole there: what it holds behind the hole is no prefix.
          if (cached[lane] !== depth) continue;
          const sure = (masks & 0xffff) >>> offset;
          const held = sure | (masks >>> (16 + offset));
          const heldRun = 31 - Math.clz32(~held & -~held);
          if (heldRun >= run) {
            cached[lane] = end;
            reached = true;
          } else cached[lane] = depth + heldRun;
          if (confirmed[lane] !== depth) continue;
          const sureRun = 31 - Math.clz32(~sure & -~sure);
          confirmed[lane] = sureRun >= run ? end : depth + sureRun;
        }
        group = words[group + LINK];
        if (group === 0) break;
        groupEnd = group + CHUNK_WORDS;
      }
      store.touch(page);
      if (!reached) break;
      before = page;
      depth = end;
    }
    return this.#match;
  }

  expire(nowNs: Nanoseconds): void {
    for (let replica = 0; replica < this.maxReplicas; replica++) this.#evidence.expireLane(replica, nowNs);
  }

  clearReplica(replica: number): void {
    this.#emptyAll(replica);
    this.#capacities.reset(replica);
  }

  snapshot(replica: number): SnapshotRun[] {
    const store = this.#evidence.store;
    const engineOf = new Map<number, readonly [number, number]>();
    this.#aliases?.forEachOf(replica, (lo, hi, block) => engineOf.set(block, [lo, hi]));
    const runs: SnapshotRun[] = [];
    for (let page = 0; page < store.maxPages; page++) {
      if (store.used(page) === 0) continue;
      for (let tier = 0; tier < this.#tiersSeen; tier++) {
        const at = store.holderOf(page, tier * this.maxReplicas + replica);
        if (at === NONE) continue;
        const mask = store.words[at + 1] & 0xffff;
        for (let offset = 0; offset < PAGE_BLOCKS;) {
          if (((mask >>> offset) & 1) === 0) {
            offset++;
            continue;
          }
          const first = page * PAGE_BLOCKS + offset;
          while (offset < PAGE_BLOCKS && ((mask >>> offset) & 1) === 1) offset++;
          runs.push(this.#run(TIERS[tier], first, page * PAGE_BLOCKS + offset, engineOf));
        }
      }
    }
    return runs;
  }

  restore(replica: number, runs: readonly SnapshotRun[]): void {
    this.#emptyAll(replica);
    for (const { tier, sequence, engine } of runs) {
      // Without the parent a run starts a page of its own, which is where it came from.
      this.#mark(this.#lane(replica, tier), ROOT_LO, ROOT_HI, sequence, sequence.length / 2, 0, engine);
    }
  }

  /** How many tiers any event has named, from the device on; lanes of further tiers are empty. */
  get tiersSeen(): number {
    return this.#tiersSeen;
  }

  stats(): KvIndexStats {
    const { store, expectations } = this.#evidence;
    return {
      blocks: this.#evidence.blocks,
      pages: store.pages,
      maxPages: store.maxPages,
      chunks: store.chunks,
      maxChunks: store.maxChunks,
      aliases: this.#aliases?.size ?? 0,
      expectations: expectations.size,
      allocatedBytes: this.#evidence.bytes + (this.#aliases?.bytes ?? 0),
      evictedPages: this.#evidence.evictedPages,
      refusedBlocks: this.#refusedBlocks,
      refusedCopies: this.#evidence.refusedCopies,
      unknownRemovals: this.#unknownRemovals,
    };
  }

  #lane(replica: number, tier: Tier): number {
    const index = TIERS.indexOf(tier);
    if (index >= this.#tiersSeen) this.#tiersSeen = index + 1;
    return index * this.maxReplicas + replica;
  }

  #stored(replica: number, lane: number, event: KvEventBody & { kind: "stored" }): void {
    const { parent, engine, local } = event;
    const blocks = engine.length / 2;
    if (local === null) {
      const parentLo = parent === null ? ROOT_LO : parent[0] | 0;
      const parentHi = parent === null ? ROOT_HI : parent[1] | 0;
      this.#mark(lane, parentLo, parentHi, engine, blocks, 0, null);
      return;
    }
    let parentLo = ROOT_LO;
    let parentHi = ROOT_HI;
    if (parent !== null) {
      const block = this.#aliases?.find(replica, parent[0] | 0, parent[1] | 0) ?? NONE;
      if (block === NONE) {
        this.#refusedBlocks += blocks;
        return;
      }
      parentLo = this.#evidence.store.words[hashAt(block)];
      parentHi = this.#evidence.store.words[hashAt(block) + 1];
    }
    if (this.#chain.length < 2 * blocks) this.#chain = new Uint32Array(4 * blocks);
    chainHashes(local, blocks, parentLo, parentHi, this.#chain);
    this.#mark(lane, parentLo, parentHi, this.#chain, blocks, 0, engine);
  }

  /**
   * Gives a lane evidence for a run of blocks: confirmed if `expiresNs` is 0, else expected until then. With `engine`, each
   * block is also known by the engine's hash. Returns how many blocks were taken, from the first.
   */
  #mark(
    lane: number,
    parentLo: number,
    parentHi: number,
    sequence: Uint32Array,
    blocks: number,
    expiresNs: Nanoseconds,
    engine: Uint32Array | null,
  ): number {
    const evidence = this.#evidence;
    const isRoot = parentLo === ROOT_LO && parentHi === ROOT_HI;
    let previous = isRoot ? NONE : evidence.store.table.find(parentLo, parentHi);
    let taken = 0;
    // One round is a stretch of blocks in one page.
    while (taken < blocks) {
      let first = previous + 1;
      let run = previous === NONE ? 0 : evidence.extend(previous, sequence, taken, blocks);
      if (run === 0) {
        first = evidence.findOrStart(sequence, taken, blocks);
        if (first === NONE) break;
        run = 1 + evidence.extend(first, sequence, taken + 1, blocks);
      }
      const page = first >> 4;
      const bits = ((1 << run) - 1) << (first & 15);
      const granted = this.#grant(page, lane, bits, expiresNs);
      let named = granted ? run : 0;
      if (granted && engine !== null) {
        named = this.#aliasRun(lane % this.maxReplicas, engine, taken, first, run);
        // A block that cannot be known by its engine's name could never be removed again.
        if (named < run) evidence.withdraw(page, lane, ((1 << run) - (1 << named)) << (first & 15));
      }
      if (expiresNs === Infinity) this.#noteStretch(page, bits);
      taken += named;
      if (named < run) {
        // Blocks that nobody holds now must not stay, and what follows them would have no parent.
        evidence.tidy(page);
        break;
      }
      previous = first + run - 1;
    }
    this.#refusedBlocks += blocks - taken;
    return taken;
  }

  #emptyAll(replica: number): void {
    let wasFilled = false;
    for (let tier = 0; tier < this.#tiersSeen; tier++) {
      if (this.#empty(tier * this.maxReplicas + replica)) wasFilled = true;
    }
    if (wasFilled) this.#aliases?.sweep(replica);
  }

  /** A pass over all pages, unless there is nothing to forget; whether there was. */
  #empty(lane: number): boolean {
    if (this.#isFilled[lane] === 0) return false;
    this.#evidence.clearLane(lane);
    this.#isFilled[lane] = 0;
    return true;
  }

  #grant(page: number, lane: number, bits: number, expiresNs: Nanoseconds): boolean {
    this.#isFilled[lane] = 1;
    return expiresNs > 0
      ? this.#evidence.expect(page, lane, bits, expiresNs)
      : this.#evidence.confirm(page, lane, bits);
  }

  #noteStretch(page: number, bits: number): void {
    if (this.#stretchNumbers === this.#stretches.length) {
      const longer = new Int32Array(2 * this.#stretches.length);
      longer.set(this.#stretches);
      this.#stretches = longer;
    }
    this.#stretches[this.#stretchNumbers++] = page;
    this.#stretches[this.#stretchNumbers++] = bits;
  }

  /** Makes an engine's hashes stand for blocks of one page; returns for how many there was room. */
  #aliasRun(replica: number, engine: Uint32Array, from: number, first: number, run: number): number {
    const check: AliasCheck = (owner, block, bits) => this.#isCurrentAlias(owner, block, bits);
    this.#aliases ??= new AliasTable(this.#maxAliases, check);
    const aliases = this.#aliases;
    const { words } = this.#evidence.store;
    for (let i = 0; i < run; i++) {
      const lo = engine[2 * (from + i)] | 0;
      const hi = engine[2 * (from + i) + 1] | 0;
      const known = words[hashAt(first + i)] >>> 16;
      if (aliases.set(replica, lo, hi, first + i, known)) continue;
      // Forgetting pages makes their aliases void, which makes room for this one.
      this.#evidence.makeRoom(first >> 4);
      if (!aliases.set(replica, lo, hi, first + i, known)) return i;
    }
    return run;
  }

  #removed(replica: number, lane: number, engine: Uint32Array): void {
    const { words, table } = this.#evidence.store;
    const aliases = this.#aliases;
    const blocks = engine.length / 2;
    if (aliases !== null && this.#aliasedBlocks.length < blocks) this.#aliasedBlocks = new Int32Array(2 * blocks);
    let from = 0;
    let bits = 0;
    let page = NONE;
    for (let i = 0; i < blocks;) {
      let found = NONE;
      const lo = engine[2 * i] | 0;
      const hi = engine[2 * i + 1] | 0;
      if (aliases !== null) this.#aliasedBlocks[i] = found = aliases.take(replica, lo, hi);
      if (found === NONE) found = table.find(lo, hi);
      if (found === NONE) {
        this.#unknownRemovals++;
        i++;
        continue;
      }
      // Engines forget a prompt from its end, so the blocks before the one removed are the likeliest next.
      const run = aliases !== null ? 1 : blocksBack(words, found, engine, i, blocks);
      const mask = ((1 << run) - 1) << ((found & 15) + 1 - run);
      if (bits !== 0 && (found >> 4 !== page || (bits & mask) !== 0)) {
        this.#withdraw(replica, lane, engine, page, bits, from, i);
        from = i;
        bits = 0;
      }
      bits |= mask;
      page = found >> 4;
      i += run;
    }
    if (bits !== 0) this.#withdraw(replica, lane, engine, page, bits, from, blocks);
  }

  /** Withdraws evidence for blocks of one page, and puts back the aliases taken for those the replica still holds. */
  #withdraw(
    replica: number,
    lane: number,
    engine: Uint32Array,
    page: number,
    bits: number,
    from: number,
    to: number,
  ): void {
    const unknown = this.#evidence.withdraw(page, lane, bits);
    for (let rest = unknown; rest !== 0; rest &= rest - 1) this.#unknownRemovals++;
    if (this.#aliases === null) return;
    for (let i = from; i < to; i++) {
      const block = this.#aliasedBlocks[i];
      if (block === NONE || !this.#holds(replica, block)) continue;
      const check = this.#evidence.store.words[hashAt(block)] >>> 16;
      this.#aliases.set(replica, engine[2 * i] | 0, engine[2 * i + 1] | 0, block, check);
    }
  }

  /** Whether any tier of the replica holds a block for certain. */
  #holds(replica: number, block: number): boolean {
    for (let tier = 0; tier < this.#tiersSeen; tier++) {
      if (this.#evidence.isConfirmed(tier * this.maxReplicas + replica, block)) return true;
    }
    return false;
  }

  /** Whether an alias still stands for its block: the same block as then, and held by the replica. */
  #isCurrentAlias(replica: number, block: number, check: number): boolean {
    const { store } = this.#evidence;
    const isSame = (block & 15) < store.used(block >> 4) && store.words[hashAt(block)] >>> 16 === check;
    return isSame && this.#holds(replica, block);
  }

  #run(tier: Tier, first: number, end: number, engineOf: ReadonlyMap<number, readonly [number, number]>): SnapshotRun {
    const words = this.#evidence.store.words;
    const sequence = Uint32Array.from(words.subarray(hashAt(first), hashAt(first) + 2 * (end - first)));
    let engine: Uint32Array | null = new Uint32Array(sequence.length);
    for (let block = first; block < end && engine !== null; block++) {
      const own = engineOf.get(block);
      if (own === undefined) engine = null;
      else engine.set(own, 2 * (block - first));
    }
    return { tier, sequence, engine };
  }
}

/** The length of a page all of whose blocks are next in the prompt; 0 if they are not, whatever the page holds now. */
function wholePage(words: Int32Array, page: number, sequence: Uint32Array, depth: number, blocks: number): number {
  const used = words[headerAt(page)] & USED;
  if (used === 0 || depth + used > blocks) return 0;
  const at = hashAt(page * PAGE_BLOCKS + used - 1);
  const want = 2 * (depth + used - 1);
  return words[at] === (sequence[want] | 0) && words[at + 1] === (sequence[want + 1] | 0) ? used : 0;
}

/** How many hashes of a removal, from `from` on, are those of `block` and of the blocks before it in its page, in this order. */
function blocksBack(words: Int32Array, block: number, engine: Uint32Array, from: number, to: number): number {
  const most = Math.min(to - from, (block & 15) + 1);
  let at = hashAt(block);
  let run = 0;
  // The first is the block itself.
  do {
    run++;
    at -= 2;
  } while (
    run < most &&
    words[at] === (engine[2 * (from + run)] | 0) &&
    words[at + 1] === (engine[2 * (from + run) + 1] | 0)
  );
  return run;
}
