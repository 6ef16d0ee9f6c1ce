import type { Nanoseconds } from "../core/clock.ts";

/**
 * What happens first at one moment: what is over is settled, the router hears of it, requests come, requests go to their
 * workers, and only then do steps begin.
 */
export const EventClass = { completion: 0, signal: 1, arrival: 2, routing: 3, stepStart: 4 } as const;

export type EventClass = (typeof EventClass)[keyof typeof EventClass];

const CLASS_UNIT = 2 ** 48;

/**
 * Coming events in the order of (time, class, order of pushing): a binary heap in typed arrays. An event carries a kind
 * and two numbers; taking one puts them into the fields of the queue, so that nothing is allocated.
 */
export class EventQueue {
  atNs: Nanoseconds = 0;
  kind = 0;
  payload = 0;
  version = 0;
  #times: Float64Array;
  /** Class and order of pushing in one number. */
  #ranks: Float64Array;
  #kinds: Int32Array;
  #payloads: Int32Array;
  #versions: Int32Array;
  #size = 0;
  #pushed = 0;

  constructor(capacity = 1024) {
    this.#times = new Float64Array(capacity);
    this.#ranks = new Float64Array(capacity);
    this.#kinds = new Int32Array(capacity);
    this.#payloads = new Int32Array(capacity);
    this.#versions = new Int32Array(capacity);
  }

  get size(): number {
    return this.#size;
  }

  /** When the next event is due; Infinity if there is none. */
  get nextNs(): Nanoseconds {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : this.#times[0];
  }

  /** Class of the next event; only if there is one. */
  get nextClass(): number {
    return Math.floor(this.#ranks[0] / CLASS_UNIT);
  }

  push(atNs: Nanoseconds, eventClass: EventClass, kind: number, payload: number, version = 0): void {
    if (this.#size === this.#times.length) this.#grow();
    const rank = eventClass * CLASS_UNIT + this.#pushed++;
    let at = this.#size++;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!this.#isBefore(atNs, rank, above)) break;
      this.#move(above, at);
      at = above;
    }
    this.#set(at, atNs, rank, kind, payload, version);
  }

  /** Takes the next event into the fields; false if there is none. */
  take(): boolean {
    if (this.#size === 0) return false;
    this.atNs = this.#times[0];
    this.kind = this.#kinds[0];
    this.payload = this.#payloads[0];
    this.version = this.#versions[0];
    const last = --this.#size;
    const atNs = this.#times[last];
    const rank = this.#ranks[last];
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= last) break;
      if (below + 1 < last && this.#isBefore(this.#times[below + 1], this.#ranks[below + 1], below)) below += 1;
      if (this.#isBefore(atNs, rank, below)) break;
      this.#move(below, at);
      at = below;
    }
    this.#set(at, atNs, rank, this.#kinds[last], this.#payloads[last], this.#versions[last]);
    return true;
  }

  #isBefore(atNs: Nanoseconds, rank: number, other: number): boolean {
    const otherNs = this.#times[other];
    return atNs < otherNs || (atNs === otherNs && rank < this.#ranks[other]);
  }

  #move(from: number, to: number): void {
    this.#set(to, this.#times[from], this.#ranks[from], this.#kinds[from], this.#payloads[from], this.#versions[from]);
  }

  #set(at: number, atNs: Nanoseconds, rank: number, kind: number, payload: number, version: number): void {
    this.#times[at] = atNs;
    this.#ranks[at] = rank;
    this.#kinds[at] = kind;
    this.#payloads[at] = payload;
    this.#versions[at] = version;
  }

  #grow(): void {
    const capacity = 2 * this.#times.length;
    this.#times = copied(this.#times, new Float64Array(capacity));
    this.#ranks = copied(this.#ranks, new Float64Array(capacity));
    this.#kinds = copied(this.#kinds, new Int32Array(capacity));
    this.#payloads = copied(this.#payloads, new Int32Array(capacity));
    this.#versions = copied(this.#versions, new Int32Array(capacity));
  }
}

function copied<T extends Float64Array | Int32Array>(from: T, into: T): T {
  into.set(from);
  return into;
}
