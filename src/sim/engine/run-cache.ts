import { WarmpathError } from "../../core/errors.ts";
import type { BlockCache, BlockCacheOptions, CacheListener, CacheMatch, Holding } from "./block-cache.ts";

/**
 * A run of consecutive blocks of content, a node of the prefix tree. Blocks `start` to `start + length` of `sequence`; a
 * run without copies is kept only while runs that continue it are.
 */
interface Run {
  readonly sequence: Uint32Array;
  start: number;
  length: number;
  parent: Run | undefined;
  children: number;
  /** Physical copies in the order they were stored; a lookup takes the first. */
  readonly copies: Copy[];
  /** The next run whose first hash has the same low lane. */
  sameKey: Run | undefined;
}

/** One physical copy of a run. All of its blocks have the same holders, so one count does for them. */
interface Copy {
  readonly run: Run;
  references: number;
  /** The piece before this one, where a split has parted them: whoever held both holds this one by name. */
  before: Copy | undefined;
  /** Neighbours in the order of release, while nobody holds it. */
  older: Copy | undefined;
  newer: Copy | undefined;
}

/** What a request holds in a `RunCache`. */
export class RunHolding implements Holding {
  published = 0;
  unpublished = 0;
  /** Held copies from the first block on, and the block where each began when it was taken. */
  readonly copies: Copy[] = [];
  readonly starts: number[] = [];
}

/**
 * Keeps blocks as runs. Sequence hashes chain, so two runs are equal up to a block if they are equal in that block alone:
 * a lookup costs a comparison per run and a bisection at the end, however many blocks it covers. A run is split where
 * holders part; the new object is the head, so that children and holders of the tail need no repair.
 *
 * Blocks released together leave from the last to the first, which is why a run needs one place in the order of release.
 */
export class RunCache implements BlockCache<RunHolding> {
  readonly poolBlocks: number;
  readonly #everyCopy: boolean;
  readonly #listener: CacheListener;
  readonly #byFirstHash = new Map<number, Run>();
  readonly #match: CacheMatch = { blocks: 0, unreferenced: 0 };
  /** The runs of the last match, from the first block on; what is left of earlier ones behind them is never looked at. */
  readonly #path: Run[] = [];
  #oldest: Copy | undefined;
  #newest: Copy | undefined;
  #empty: number;
  #unreferenced = 0;
  #evicted = 0;

  constructor(options: BlockCacheOptions, listener: CacheListener) {
    this.poolBlocks = options.poolBlocks;
    this.#empty = options.poolBlocks;
    this.#everyCopy = options.duplicates === "perCopyEvents";
    this.#listener = listener;
  }

  get available(): number {
    return this.#empty + this.#unreferenced;
  }

  get heldBlocks(): number {
    return this.poolBlocks - this.#empty - this.#unreferenced;
  }

  get usedBlocks(): number {
    return this.poolBlocks - this.#empty;
  }

  get evictedBlocks(): number {
    return this.#evicted;
  }

  match(sequence: Uint32Array, limit: number): CacheMatch {
    const path = this.#path;
    const match = this.#match;
    let runs = 0;
    match.blocks = 0;
    match.unreferenced = 0;
    while (match.blocks < limit) {
      const run = this.#find(sequence, match.blocks);
      if (run === undefined || run.copies.length === 0) break;
      const common = commonBlocks(run, sequence, Math.min(run.length, limit - match.blocks));
      path[runs++] = run;
      match.blocks += common;
      if (run.copies[0].references === 0) match.unreferenced += common;
      if (common < run.length) break;
    }
    return match;
  }

  hold(_sequence: Uint32Array, blocks: number): RunHolding {
    const holding = new RunHolding();
    for (let i = 0; holding.published < blocks; i++) {
      let run = this.#path[i];
      const wanted = blocks - holding.published;
      if (wanted < run.length) run = this.#split(run, wanted);
      this.#reference(run.copies[0]);
      holding.copies.push(run.copies[0]);
      holding.starts.push(run.start);
      holding.published += run.length;
    }
    return holding;
  }

  allocate(holding: RunHolding, blocks: number): void {
    if (blocks > this.available) {
      const message = `${blocks} KV blocks wanted, ${this.available} of ${this.poolBlocks} available`;
      throw new WarmpathError("WP_INVALID_STATE", message);
    }
    const missing = blocks - this.#empty;
    if (missing > 0) this.#evict(missing);
    this.#empty -= blocks;
    holding.unpublished += blocks;
  }

  publish(holding: RunHolding, sequence: Uint32Array, upTo: number): void {
    const from = holding.published;
    if (upTo <= from) return;
    holding.unpublished -= upTo - from;
    holding.published = upTo;
    const last = holding.copies.at(-1);
    const existing = this.#find(sequence, from);
    if (existing === undefined && last !== undefined && this.#canGrow(last, sequence)) {
      last.run.length += upTo - from;
      this.#listener.stored(sequence, from, upTo);
      return;
    }
    if (this.#everyCopy) this.#listener.stored(sequence, from, upTo);
    let parent = last?.run;
    let at = from;
    for (let run = existing; run !== undefined && at < upTo; run = at < upTo ? this.#find(sequence, at) : undefined) {
      const common = commonBlocks(run, sequence, Math.min(run.length, upTo - at));
      const shared = common < run.length ? this.#split(run, common) : run;
      if (!this.#everyCopy && shared.copies.length === 0) this.#listener.stored(sequence, at, at + common);
      this.#addCopy(holding, shared);
      parent = shared;
      at += common;
    }
    if (at === upTo) return;
    if (!this.#everyCopy) this.#listener.stored(sequence, at, upTo);
    const run: Run = {
      sequence,
      start: at,
      length: upTo - at,
      parent,
      children: 0,
      copies: [],
      sameKey: undefined,
    };
    if (parent !== undefined) parent.children += 1;
    this.#enter(run);
    this.#addCopy(holding, run);
  }

  release(holding: RunHolding): void {
    // From the last block to the first, so that a prompt's beginning outlives its end.
    this.#empty += holding.unpublished;
    holding.unpublished = 0;
    for (let i = holding.copies.length - 1; i >= 0; i--) {
      let copy = holding.copies[i];
      const start = holding.starts[i];
      this.#dereference(copy);
      while (copy.run.start > start && copy.before !== undefined) {
        copy = copy.before;
        this.#dereference(copy);
      }
    }
    holding.published = 0;
  }

  /** Gives up everything that nobody holds, as an operator may ask for. */
  forgetUnheld(): void {
    this.#evict(this.#unreferenced);
  }

  contents(): (readonly [Uint32Array, number, number])[] {
    const runs: (readonly [Uint32Array, number, number])[] = [];
    for (const first of this.#byFirstHash.values()) {
      for (let run: Run | undefined = first; run !== undefined; run = run.sameKey) {
        for (const _ of this.#everyCopy ? run.copies : run.copies.slice(0, 1)) {
          runs.push([run.sequence, run.start, run.start + run.length]);
        }
      }
    }
    return runs;
  }

  /** A run can be lengthened in place if nobody but its only holder would notice. */
  #canGrow(copy: Copy, sequence: Uint32Array): boolean {
    const { run } = copy;
    return run.sequence === sequence && copy.references === 1 && run.copies.length === 1 && run.children === 0;
  }

  #addCopy(holding: RunHolding, run: Run): void {
    const copy: Copy = { run, references: 1, before: undefined, older: undefined, newer: undefined };
    run.copies.push(copy);
    holding.copies.push(copy);
    holding.starts.push(run.start);
  }

  #reference(copy: Copy): void {
    if (copy.references++ > 0) return;
    this.#unreferenced -= copy.run.length;
    this.#unlink(copy);
  }

  #dereference(copy: Copy): void {
    if (--copy.references > 0) return;
    this.#unreferenced += copy.run.length;
    copy.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = copy;
    else this.#newest.newer = copy;
    this.#newest = copy;
  }

  #unlink(copy: Copy): void {
    if (copy.older === undefined) this.#oldest = copy.newer;
    else copy.older.newer = copy.newer;
    if (copy.newer === undefined) this.#newest = copy.older;
    else copy.newer.older = copy.older;
    copy.older = undefined;
    copy.newer = undefined;
  }

  /** Parts a run behind its first `blocks` blocks and returns the new head; the given object becomes the tail. */
  #split(run: Run, blocks: number): Run {
    const head: Run = {
      sequence: run.sequence,
      start: run.start,
      length: blocks,
      parent: run.parent,
      children: 1,
      copies: [],
      sameKey: undefined,
    };
    this.#leave(run);
    this.#enter(head);
    run.parent = head;
    run.start += blocks;
    run.length -= blocks;
    this.#enter(run);
    for (const copy of run.copies) {
      const piece: Copy = {
        run: head,
        references: copy.references,
        before: copy.before,
        older: undefined,
        newer: undefined,
      };
      copy.before = piece;
      head.copies.push(piece);
      if (copy.references > 0) continue;
      // The head leaves right after the tail.
      piece.older = copy;
      piece.newer = copy.newer;
      if (copy.newer === undefined) this.#newest = piece;
      else copy.newer.older = piece;
      copy.newer = piece;
    }
    return head;
  }

  #evict(blocks: number): void {
    let missing = blocks;
    while (missing > 0) {
      const copy = this.#oldest;
      if (copy === undefined) return;
      const given = Math.min(missing, copy.run.length);
      this.#evictTail(copy, given);
      missing -= given;
    }
  }

  #evictTail(copy: Copy, blocks: number): void {
    const { run } = copy;
    this.#evicted += blocks;
    this.#empty += blocks;
    this.#unreferenced -= blocks;
    const isLast = run.copies.length === 1;
    const end = run.start + run.length;
    if (this.#everyCopy || isLast) this.#listener.removed(run.sequence, end - blocks, end);
    if (blocks < run.length) {
      if (isLast && run.children === 0) {
        run.length -= blocks;
        return;
      }
      this.#split(run, run.length - blocks);
    }
    this.#unlink(copy);
    run.copies.splice(run.copies.indexOf(copy), 1);
    this.#prune(run);
  }

  /** Forgets a run that nothing holds and nothing continues, and then perhaps those before it. */
  #prune(run: Run): void {
    let at: Run | undefined = run;
    while (at !== undefined && at.copies.length === 0 && at.children === 0) {
      this.#leave(at);
      at = at.parent;
      if (at !== undefined) at.children -= 1;
    }
  }

  /** The run that begins with block `at` of a sequence. */
  #find(sequence: Uint32Array, at: number): Run | undefined {
    if (2 * at >= sequence.length) return undefined;
    const hi = sequence[2 * at + 1];
    let run = this.#byFirstHash.get(sequence[2 * at] | 0);
    while (run !== undefined && run.sequence[2 * run.start + 1] !== hi) run = run.sameKey;
    return run;
  }

  #enter(run: Run): void {
    const key = run.sequence[2 * run.start] | 0;
    run.sameKey = this.#byFirstHash.get(key);
    this.#byFirstHash.set(key, run);
  }

  #leave(run: Run): void {
    const key = run.sequence[2 * run.start] | 0;
    const first = this.#byFirstHash.get(key);
    if (first === run) {
      if (run.sameKey === undefined) this.#byFirstHash.delete(key);
      else this.#byFirstHash.set(key, run.sameKey);
    } else {
      let at = first;
      while (at !== undefined && at.sameKey !== run) at = at.sameKey;
      if (at !== undefined) at.sameKey = run.sameKey;
    }
    run.sameKey = undefined;
  }
}

/** How many of the first `limit` blocks of a run a sequence has in common, one at least. */
function commonBlocks(run: Run, sequence: Uint32Array, limit: number): number {
  if (isEqualAt(run, sequence, limit - 1)) return limit;
  let equal = 0;
  let different = limit - 1;
  while (different - equal > 1) {
    const middle = (equal + different) >>> 1;
    if (isEqualAt(run, sequence, middle)) equal = middle;
    else different = middle;
  }
  return equal + 1;
}

function isEqualAt(run: Run, sequence: Uint32Array, offset: number): boolean {
  const at = 2 * (run.start + offset);
  return run.sequence[at] === sequence[at] && run.sequence[at + 1] === sequence[at + 1];
}
