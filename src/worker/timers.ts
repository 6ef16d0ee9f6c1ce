import { NS_PER_MS, type Clock, type Nanoseconds } from "../core/clock.ts";

/** A callback that has been asked for and can be called off. */
export interface Timer {
  cancel(): void;
}

/** A clock that can be waited for: an event queue in virtual time, the machine's timers in wall time. */
export interface Timers extends Clock {
  /** Calls back once at this time, or as soon as possible after it. */
  at(timeNs: Nanoseconds, callback: () => void): Timer;
}

/** The machine's own clock and timers, from now on as 0. */
export class WallTimers implements Timers {
  readonly #originNs: bigint = process.hrtime.bigint();

  nowNs(): Nanoseconds {
    return Number(process.hrtime.bigint() - this.#originNs);
  }

  at(timeNs: Nanoseconds, callback: () => void): Timer {
    const timer = setTimeout(callback, Math.max(0, (timeNs - this.nowNs()) / NS_PER_MS));
    return { cancel: () => clearTimeout(timer) };
  }
}
