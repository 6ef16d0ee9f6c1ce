import type { Nanoseconds } from "../clock.ts";

/** Arrivals are forgotten with this time constant, and the time in which they came with them. */
const MEMORY_NS = 30e9;
/** Taken to have passed without an arrival before the first: two in a row are not a rate yet. */
const PRIOR_NS = 1e9;

/** How many requests come, per nanosecond, over the last half minute; as near to it after seconds as after minutes. */
export class ArrivalRate {
  #arrivals = 0;
  #latestNs: Nanoseconds = 0;
  #firstNs: Nanoseconds | undefined;

  at(nowNs: Nanoseconds): number {
    if (this.#firstNs === undefined) return 0;
    const seenNs = MEMORY_NS * (1 - Math.exp((this.#firstNs - nowNs) / MEMORY_NS));
    return this.#remembered(nowNs) / (seenNs + PRIOR_NS);
  }

  arrived(nowNs: Nanoseconds): void {
    this.#firstNs ??= nowNs;
    this.#arrivals = this.#remembered(nowNs) + 1;
    this.#latestNs = nowNs;
  }

  #remembered(nowNs: Nanoseconds): number {
    return this.#arrivals * Math.exp((this.#latestNs - nowNs) / MEMORY_NS);
  }
}
