import type { Nanoseconds } from "../clock.ts";

/**
 * How many prompts wait at a replica, on average over the last moments. A burst that an idle fleet takes in its stride is not
 * a queue: only what lasts makes everybody's first token late, so only that may count against a first token.
 */
export class QueuePressure {
  readonly #memoryNs: number;
  #pressure = 0;
  /** What waited just after the last decision; undefined before the first. */
  #waited: number | undefined;
  #decidedNs: Nanoseconds = 0;

  constructor(memoryNs: number) {
    this.#memoryNs = memoryNs;
  }

  /** The pressure at a moment at which `waiting` prompts wait at a replica. */
  at(nowNs: Nanoseconds, waiting: number): number {
    if (this.#waited === undefined) return waiting;
    const passedNs = nowNs - this.#decidedNs;
    if (passedNs <= 0) return this.#pressure;
    // Between two decisions it fell from what the first left to what the second finds.
    const meanwhile = (this.#waited + waiting) / 2;
    return meanwhile + (this.#pressure - meanwhile) * Math.exp(-passedNs / this.#memoryNs);
  }

  /** A decision was made at that moment, after which `waits` prompts wait. */
  decided(nowNs: Nanoseconds, pressure: number, waits: number): void {
    this.#pressure = pressure;
    this.#waited = waits;
    this.#decidedNs = Math.max(this.#decidedNs, nowNs);
  }
}
