import { type Clock, NS_PER_MS, type Nanoseconds } from "../core/clock.ts";

/**
 * Wall time that never jumps, in nanoseconds since an origin. All processes of a host have the same monotonic clock, so
 * those that share an origin have the same times.
 */
export class RunClock implements Clock {
  readonly #originMs: number;

  constructor(originHrtimeNs: bigint = process.hrtime.bigint()) {
    const sinceNs = Number(process.hrtime.bigint() - originHrtimeNs);
    this.#originMs = performance.now() - sinceNs / NS_PER_MS;
  }

  /** Not `hrtime.bigint`, which leaves garbage behind with every chunk. */
  nowNs(): Nanoseconds {
    return Math.round((performance.now() - this.#originMs) * NS_PER_MS);
  }
}
