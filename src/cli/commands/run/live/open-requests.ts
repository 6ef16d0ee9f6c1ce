import type { Nanoseconds } from "../../../../core/clock.ts";
import type { MeasurementWindow } from "../../../../measure/window.ts";
import type { RequestEnd, WorkloadRequest, WorkloadSource } from "../../../../workload/request.ts";

/** A source that knows which of its requests have not been settled. */
export class OpenRequests implements WorkloadSource {
  readonly #source: WorkloadSource;
  readonly #open = new Map<string, Nanoseconds>();
  #lastDueNs: Nanoseconds = 0;

  constructor(source: WorkloadSource) {
    this.#source = source;
  }

  get abandonedTurns(): number {
    return this.#source.abandonedTurns;
  }

  /** Whether all requests of the window that were taken are settled. */
  hasSettled({ startNs, endNs }: MeasurementWindow): boolean {
    for (const arrivalNs of this.#open.values()) if (arrivalNs >= startNs && arrivalNs < endNs) return false;
    return true;
  }

  /** When the last request that was taken was due. */
  get lastDueNs(): Nanoseconds {
    return this.#lastDueNs;
  }

  /** Whether nothing is due any more and nothing will be, but for what follows on answers that may still come. */
  isOver(nowNs: Nanoseconds, drainNs: Nanoseconds): boolean {
    if (this.nextDueNs() < Infinity) return false;
    return this.#open.size === 0 || nowNs >= this.#lastDueNs + drainNs;
  }

  settled(id: string): void {
    this.#open.delete(id);
  }

  nextDueNs(): Nanoseconds {
    return this.#source.nextDueNs();
  }

  take(): WorkloadRequest {
    const request = this.#source.take();
    this.#open.set(String(request.id), request.arrivalNs);
    this.#lastDueNs = Math.max(this.#lastDueNs, request.arrivalNs);
    return request;
  }

  ended(request: WorkloadRequest, end: RequestEnd): void {
    this.#source.ended(request, end);
  }
}
