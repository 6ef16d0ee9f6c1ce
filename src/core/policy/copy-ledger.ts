import type { Nanoseconds } from "../clock.ts";

/** Prefixes remembered at a time, a power of two; one that falls onto another's place takes it. */
const PLACES = 4096;
/** What was owed fades with this time constant: a prefix nobody asks for any more is worth no copy. */
export const MEMORY_NS = 30e9;

/**
 * What the lack of one more copy has cost the requests of a prefix of late: a debt that fades, and that is settled by making
 * the copy. A table of fixed size, because prefixes come without end.
 */
export class CopyLedger {
  readonly #keys: Uint32Array = new Uint32Array(PLACES);
  readonly #debts: Float64Array = new Float64Array(PLACES);
  readonly #chargedNs: Float64Array = new Float64Array(PLACES);

  /** What is owed now; 0 for a prefix that is not known. */
  debt(key: number, nowNs: Nanoseconds): number {
    const place = key % PLACES;
    if (this.#keys[place] !== key) return 0;
    return this.#debts[place] * Math.exp((this.#chargedNs[place] - nowNs) / MEMORY_NS);
  }

  charge(key: number, nowNs: Nanoseconds, cost: number): void {
    const debt = this.debt(key, nowNs) + cost;
    const place = key % PLACES;
    this.#keys[place] = key;
    this.#debts[place] = debt;
    this.#chargedNs[place] = nowNs;
  }

  settle(key: number): void {
    const place = key % PLACES;
    if (this.#keys[place] === key) this.#debts[place] = 0;
  }
}
