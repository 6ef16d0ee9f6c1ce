import type { Nanoseconds } from "../../core/clock.ts";
import type { MeasurementWindow } from "../../measure/window.ts";
import type { RequestEnd, WorkloadRequest, WorkloadSource } from "../../workload/request.ts";

/**
 * A source that goes on until the last request of the window has ended, and not longer: were it to fall silent at the end
 * of the window, the last requests would be served by an emptying fleet and look better than those before them.
 */
export class WindowedSource implements WorkloadSource {
  readonly #source: WorkloadSource;
  readonly #window: MeasurementWindow;
  #open = 0;

  constructor(source: WorkloadSource, window: MeasurementWindow) {
    this.#source = source;
    this.#window = window;
  }

  get abandonedTurns(): number {
    return this.#source.abandonedTurns;
  }

  nextDueNs(): Nanoseconds {
    const dueNs = this.#source.nextDueNs();
    return dueNs >= this.#window.endNs && this.#open === 0 ? Infinity : dueNs;
  }

  take(): WorkloadRequest {
    const request = this.#source.take();
    if (this.#isOwn(request)) this.#open += 1;
    return request;
  }

  ended(request: WorkloadRequest, end: RequestEnd): void {
    if (this.#isOwn(request)) this.#open -= 1;
    this.#source.ended(request, end);
  }

  #isOwn({ arrivalNs }: WorkloadRequest): boolean {
    return arrivalNs >= this.#window.startNs && arrivalNs < this.#window.endNs;
  }
}

/** A source that ends after so many requests. */
export class LimitedSource implements WorkloadSource {
  readonly #source: WorkloadSource;
  #left: number;

  constructor(source: WorkloadSource, requests: number) {
    this.#source = source;
    this.#left = requests;
  }

  get abandonedTurns(): number {
    return this.#source.abandonedTurns;
  }

  nextDueNs(): Nanoseconds {
    return this.#left > 0 ? this.#source.nextDueNs() : Infinity;
  }

  take(): WorkloadRequest {
    this.#left -= 1;
    return this.#source.take();
  }

  ended(request: WorkloadRequest, end: RequestEnd): void {
    this.#source.ended(request, end);
  }
}
