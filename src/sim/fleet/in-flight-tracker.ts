import type { Nanoseconds } from "../../core/clock.ts";
import { ExactSum } from "../engine/engine-stats.ts";

/** Follows how many requests each worker has, and how far the workers are apart, over time. */
export class InFlightTracker {
  readonly counts: Int32Array;
  readonly maxima: Int32Array;
  readonly placed: Int32Array;
  readonly #sinceNs: Float64Array;
  readonly #sums: ExactSum[];
  /** How many workers have how many requests. */
  readonly #workersAt: number[];
  readonly #spreadSum = new ExactSum();
  #spreadSinceNs = 0;
  #lowest = 0;
  #highest = 0;
  #maxSpread = 0;

  constructor(workers: number) {
    this.counts = new Int32Array(workers);
    this.maxima = new Int32Array(workers);
    this.placed = new Int32Array(workers);
    this.#sinceNs = new Float64Array(workers);
    this.#sums = Array.from({ length: workers }, () => new ExactSum());
    this.#workersAt = [workers];
  }

  add(worker: number, nowNs: Nanoseconds): void {
    this.placed[worker] += 1;
    this.#change(worker, 1, nowNs);
  }

  remove(worker: number, nowNs: Nanoseconds): void {
    this.#change(worker, -1, nowNs);
  }

  /** Mean number of requests on a worker from 0 to `endNs`. */
  mean(worker: number, endNs: Nanoseconds): number {
    this.#settle(worker, endNs);
    return endNs === 0 ? 0 : this.#sums[worker].value / endNs;
  }

  /** Largest minus smallest number over the workers at the same moment. */
  spread(endNs: Nanoseconds): { mean: number; max: number } {
    this.#settleSpread(endNs);
    return { mean: endNs === 0 ? 0 : this.#spreadSum.value / endNs, max: this.#maxSpread };
  }

  #change(worker: number, by: number, nowNs: Nanoseconds): void {
    this.#settle(worker, nowNs);
    this.#settleSpread(nowNs);
    const before = this.counts[worker];
    const after = before + by;
    this.counts[worker] = after;
    if (after > this.maxima[worker]) this.maxima[worker] = after;
    const workersAt = this.#workersAt;
    workersAt[before] -= 1;
    workersAt[after] = (workersAt[after] ?? 0) + 1;
    if (after > this.#highest || (before === this.#highest && workersAt[before] === 0)) this.#highest = after;
    if (after < this.#lowest || (before === this.#lowest && workersAt[before] === 0)) this.#lowest = after;
  }

  #settle(worker: number, nowNs: Nanoseconds): void {
    this.#sums[worker].add(this.counts[worker] * (nowNs - this.#sinceNs[worker]));
    this.#sinceNs[worker] = nowNs;
  }

  #settleSpread(nowNs: Nanoseconds): void {
    if (nowNs === this.#spreadSinceNs) return;
    const spread = this.#highest - this.#lowest;
    // A difference that lasted no time is none.
    if (spread > this.#maxSpread) this.#maxSpread = spread;
    this.#spreadSum.add(spread * (nowNs - this.#spreadSinceNs));
    this.#spreadSinceNs = nowNs;
  }
}
