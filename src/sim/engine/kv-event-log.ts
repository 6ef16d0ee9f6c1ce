import type { Nanoseconds } from "../../core/clock.ts";
import type { KvEvent } from "../../core/kv-index/types.ts";
import type { CacheListener } from "./block-cache.ts";

/** An event and when the engine sent it. */
export interface TimedKvEvent {
  readonly atNs: Nanoseconds;
  readonly event: KvEvent;
}

/** Hashes of many events share one allocation, small enough to be over soon and used again. */
const SLAB_NUMBERS = 1 << 13;

/** Turns what a cache says into the engine's numbered event stream; hashes are ours, so `local` is null. */
export class KvEventLog implements CacheListener {
  readonly incarnation: string;
  readonly #out: TimedKvEvent[];
  readonly #isOn: boolean;
  /** Made and not sent; the first `#pendingCount` count. */
  readonly #pending: KvEvent[] = [];
  #pendingCount = 0;
  /** Removed hashes, written where their event will have them: `#removedFrom` to `#removedTo` are not in one yet. */
  #slab = new Uint32Array(0);
  #removedFrom = 0;
  #removedTo = 0;
  #nextId = 0;

  constructor(incarnation: string, isOn: boolean, out: TimedKvEvent[]) {
    this.incarnation = incarnation;
    this.#isOn = isOn;
    this.#out = out;
    // Set a second time already here: a field that has never changed is compiled in as a constant, and its first change
    // in the middle of a run would void most of the engine's code. Full, so that the first removal takes a slab: what is
    // run for the first time later than the rest voids code too.
    this.#slab = new Uint32Array(1);
    this.#removedFrom = 1;
    this.#removedTo = 1;
  }

  /** Id of the last event made, -1 before the first. */
  get lastEventId(): number {
    return this.#nextId - 1;
  }

  get hasPending(): boolean {
    return this.#removedTo > this.#removedFrom || this.#pendingCount > 0;
  }

  stored(sequence: Uint32Array, from: number, to: number): void {
    if (!this.#isOn) return;
    this.#sealRemoved();
    this.#pending[this.#pendingCount++] = {
      kind: "stored",
      parent: from === 0 ? null : sequence.subarray(2 * from - 2, 2 * from),
      engine: sequence.subarray(2 * from, 2 * to),
      local: null,
      incarnation: this.incarnation,
      eventId: this.#nextId++,
      tier: "device",
    };
  }

  removed(sequence: Uint32Array, from: number, to: number): void {
    if (!this.#isOn) return;
    if (this.#removedTo + 2 * (to - from) > this.#slab.length) this.#newSlab(2 * (to - from));
    const slab = this.#slab;
    let at = this.#removedTo;
    for (let block = to - 1; block >= from; block--) {
      slab[at++] = sequence[2 * block];
      slab[at++] = sequence[2 * block + 1];
    }
    this.#removedTo = at;
  }

  /** Sends what has come together. */
  flush(atNs: Nanoseconds): void {
    this.#sealRemoved();
    for (let i = 0; i < this.#pendingCount; i++) this.#out.push({ atNs, event: this.#pending[i] });
    this.#pendingCount = 0;
  }

  #newSlab(numbers: number): void {
    const open = this.#slab.subarray(this.#removedFrom, this.#removedTo);
    this.#slab = new Uint32Array(Math.max(SLAB_NUMBERS, 2 * (open.length + numbers)));
    this.#slab.set(open);
    this.#removedFrom = 0;
    this.#removedTo = open.length;
  }

  /** Removals that follow one another are one event, as engines merge them. */
  #sealRemoved(): void {
    if (this.#removedTo === this.#removedFrom) return;
    this.#pending[this.#pendingCount++] = {
      kind: "removed",
      engine: this.#slab.subarray(this.#removedFrom, this.#removedTo),
      incarnation: this.incarnation,
      eventId: this.#nextId++,
      tier: "device",
    };
    this.#removedFrom = this.#removedTo;
  }
}
