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

/** What the machine's timers take at most; anything later is waited for in parts. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;

/**
 * The machine's own clock and timers, from now on as 0, some number of times as fast. The pace can be changed while timers
 * are pending: 0 stands still, and nothing is called until it moves again.
 */
export class WallTimers implements Timers {
  readonly #speed: number;
  readonly #pending = new Set<PendingTimer>();
  #pace = 1;
  /** Where this clock stood when its pace was last changed, and where the machine's did. */
  #anchorNs: Nanoseconds = 0;
  #anchorMs: number = performance.now();

  constructor(speed = 1) {
    this.#speed = speed;
  }

  nowNs(): Nanoseconds {
    return this.#anchorNs + Math.round((performance.now() - this.#anchorMs) * NS_PER_MS * this.#speed * this.#pace);
  }

  at(timeNs: Nanoseconds, callback: () => void): Timer {
    const timer: PendingTimer = { timeNs, callback, handle: undefined };
    this.#pending.add(timer);
    this.#arm(timer);
    return {
      cancel: () => {
        clearTimeout(timer.handle);
        this.#pending.delete(timer);
      },
    };
  }

  /** How fast it runs beside its speed: 1 unless a fault is played. */
  get pace(): number {
    return this.#pace;
  }

  set pace(pace: number) {
    this.#anchorNs = this.nowNs();
    this.#anchorMs = performance.now();
    this.#pace = pace;
    for (const timer of this.#pending) this.#arm(timer);
  }

  #arm(timer: PendingTimer): void {
    clearTimeout(timer.handle);
    timer.handle = undefined;
    if (this.#pace === 0) return;
    const waitMs = (timer.timeNs - this.nowNs()) / (NS_PER_MS * this.#speed * this.#pace);
    // Rounded up, because the machine's timers are of whole milliseconds and cut off the rest.
    const wholeMs = Math.min(LONGEST_WAIT_MS, Math.max(0, Math.ceil(waitMs)));
    timer.handle = setTimeout(() => this.#ring(timer), wholeMs);
  }

  #ring(timer: PendingTimer): void {
    if (this.nowNs() < timer.timeNs) {
      this.#arm(timer);
      return;
    }
    this.#pending.delete(timer);
    timer.callback();
  }
}

interface PendingTimer {
  readonly timeNs: Nanoseconds;
  readonly callback: () => void;
  handle: NodeJS.Timeout | undefined;
}
