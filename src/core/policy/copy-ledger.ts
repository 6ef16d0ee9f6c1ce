import type { Nanoseconds } from "../clock.ts";

/** Prefixes remembered at a time, a power of two; one that falls onto another's place takes it. */
const PLACES = 4096;
/** What was paid fades with this time constant, and the time it was paid in with it. */
export const MEMORY_NS = 90e9;
/** Who pays so soon after the first belongs to the same burst, which says nothing of the next. */
const MOMENT_NS = 0.25e9;
/** Taken to have passed without a payment before the first: two in a row are not a rate yet. */
const PRIOR_NS = 1e9;
/** Copies that may be made in advance, for each replica, and the share of requests that may pay for one from then on. */
const ADVANCE_PER_REPLICA = 4;
const COPY_SHARE = 0.01;

/**
 * What the lack of one more copy costs the requests of a prefix: an account that the first one to pay opens, and that is
 * closed by making the copy. A rate, and not a sum, tells a system prompt that everybody waits for from a conversation that
 * waited once, within seconds of either. A table of fixed size, because prefixes come without end.
 *
 * A copy is paid for by the request that makes it, and spares others later. Where many prefixes are worth one, they are made one after the
 * other: made all at once, they would be the late first tokens of the next minute.
 */
export class CopyLedger {
  readonly #keys: Uint32Array = new Uint32Array(PLACES);
  readonly #openedNs: Float64Array = new Float64Array(PLACES);
  readonly #paidNs: Float64Array = new Float64Array(PLACES);
  readonly #paid: Float64Array = new Float64Array(PLACES);
  /** Copies made beyond the share of requests that may pay for one. */
  #advanced = 0;

  /** What is paid per nanosecond of late; 0 for a prefix that is not known. */
  rate(key: number, nowNs: Nanoseconds): number {
    const place = key % PLACES;
    if (this.#keys[place] !== key) return 0;
    const seenNs = MEMORY_NS * (1 - Math.exp((this.#openedNs[place] - nowNs) / MEMORY_NS));
    return this.#remembered(place, nowNs) / (seenNs + PRIOR_NS);
  }

  charge(key: number, nowNs: Nanoseconds, cost: number): void {
    const place = key % PLACES;
    if (this.#keys[place] !== key) {
      // What the first one pays is not counted: the time before it is unknown, and a rate is of what came after.
      this.#keys[place] = key;
      this.#openedNs[place] = nowNs;
      this.#paid[place] = 0;
    } else if (nowNs - this.#openedNs[place] >= MOMENT_NS) {
      this.#paid[place] = this.#remembered(place, nowNs) + cost;
      this.#paidNs[place] = nowNs;
    }
  }

  settle(key: number): void {
    const place = key % PLACES;
    if (this.#keys[place] === key) this.#keys[place] = 0;
    this.#advanced += 1;
  }

  /** Whether one more may be made in front of so many replicas. */
  mayCopy(replicas: number): boolean {
    return this.#advanced + 1 <= ADVANCE_PER_REPLICA * replicas;
  }

  /** A request was placed, whatever it made. */
  placed(): void {
    this.#advanced = Math.max(0, this.#advanced - COPY_SHARE);
  }

  #remembered(place: number, nowNs: Nanoseconds): number {
    return this.#paid[place] * Math.exp((this.#paidNs[place] - nowNs) / MEMORY_NS);
  }
}
