import { NS_PER_SECOND, type Nanoseconds } from "../../core/clock.ts";
import type { MeasurementWindow } from "../../measure/window.ts";
import { cellWindow, endedWindow, microsecondFrom } from "../experiment/target.ts";
import type { Experiment } from "../experiment/types.ts";

/** Requests before the window where the file says nothing. */
const WARM_UP_REQUESTS = 100;
/** How much longer than planned a warm-up may take; a fleet that answers nothing is measured as it is. */
const PATIENCE_NS: Nanoseconds = 120 * NS_PER_SECOND;

/**
 * The window of a live cell. It begins when the warm-up's time is over and so many requests have completed: a fleet that is
 * slow to start is not measured while it starts. Until then its edges are not known, and nothing is in it.
 */
export class LiveWindow {
  /** Changes when the window begins, and when a schedule has come to an end that nobody knew. */
  readonly measured: { startNs: Nanoseconds; endNs: Nanoseconds; readonly drainNs: Nanoseconds };
  readonly #planned: MeasurementWindow;
  readonly #wantedRequests: number;
  #completed = 0;

  constructor(experiment: Experiment, lastDueNs: Nanoseconds | undefined) {
    this.#planned = cellWindow(experiment, lastDueNs);
    // A schedule is measured from its beginning unless told; it has nothing to spare.
    this.#wantedRequests = experiment.warmUpRequests ?? (lastDueNs === undefined ? WARM_UP_REQUESTS : 0);
    this.measured = { startNs: Infinity, endNs: Infinity, drainNs: this.#planned.drainNs };
  }

  /** Before this it cannot begin. */
  get earliestNs(): Nanoseconds {
    return this.#planned.startNs;
  }

  get hasBegun(): boolean {
    return this.measured.startNs !== Infinity;
  }

  /** Whether its end is known once it has begun: not where turns of a schedule wait for answers. */
  get hasPlannedEnd(): boolean {
    return this.#planned.endNs < Infinity;
  }

  /** Ends a window without a planned end, after the last request that was due in it. */
  end(lastDueNs: Nanoseconds): void {
    this.measured.endNs = endedWindow(this.measured, lastDueNs).endNs;
  }

  /** Seconds and requests of the warm-up; of one that is over. */
  get warmUp(): { readonly seconds: number; readonly requests: number } {
    return { seconds: this.measured.startNs / NS_PER_SECOND, requests: this.#completed };
  }

  /** A request has completed. */
  completed(): void {
    if (!this.hasBegun) this.#completed += 1;
  }

  /** Begins the window if everything it waits for has come; true in the moment that it begins. */
  begin(nowNs: Nanoseconds): boolean {
    if (this.hasBegun || nowNs < this.earliestNs) return false;
    if (this.#completed < this.#wantedRequests && nowNs < this.earliestNs + PATIENCE_NS) return false;
    // A timer that rang late must not shift a window that waits for time alone.
    const startNs = this.#wantedRequests === 0 ? this.earliestNs : microsecondFrom(nowNs);
    this.measured.startNs = startNs;
    this.measured.endNs = startNs + (this.#planned.endNs - this.#planned.startNs);
    return true;
  }
}
