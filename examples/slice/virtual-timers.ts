import type { Nanoseconds } from "../../src/core/clock.ts";
import type { Timer, Timers } from "../../src/worker/timers.ts";
import { DueHeap } from "../../src/workload/due-heap.ts";

/** Time that passes only from one event to the next; an hour of it costs what its events cost. */
export class VirtualTimers implements Timers {
  readonly #due = new DueHeap<{ readonly callback: () => void; isCancelled: boolean }>();
  #nowNs: Nanoseconds = 0;

  nowNs(): Nanoseconds {
    return this.#nowNs;
  }

  /** When the next event is due; Infinity if there is none. */
  get nextNs(): Nanoseconds {
    return this.#due.firstNs;
  }

  at(timeNs: Nanoseconds, callback: () => void): Timer {
    const entry = { callback, isCancelled: false };
    this.#due.add(Math.max(timeNs, this.#nowNs), entry);
    return { cancel: () => (entry.isCancelled = true) };
  }

  /** Moves on to a time before which nothing is due. */
  advanceTo(timeNs: Nanoseconds): void {
    this.#nowNs = timeNs;
  }

  /** Moves on to the next event and lets it happen. */
  runNext(): void {
    this.#nowNs = this.#due.firstNs;
    const entry = this.#due.take();
    if (entry !== undefined && !entry.isCancelled) entry.callback();
  }
}
