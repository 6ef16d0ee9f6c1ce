import type { Nanoseconds } from "../../../../core/clock.ts";
import type { MeasurementWindow } from "../../../../measure/window.ts";
import type { RequestEnd, WorkloadRequest, WorkloadSource } from "../../../../workload/request.ts";

/** A source that knows which of its requests have not been settled. */
export class OpenRequests implements WorkloadSource {
  readonly #source: WorkloadSource;
  readonly #open = new Map<string, Nanoseconds>();

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

  settled(id: string): void {
    this.#open.delete(id);
  }

  nextDueNs(): Nanoseconds {
    return this.#source.nextDueNs();
  }

  take(): WorkloadRequest {
    const request = this.#source.take();
    this.#open.set(String(request.id), request.arrivalNs);
    return request;
  }

  ended(request: WorkloadRequest, end: RequestEnd): void {
    this.#source.ended(request, end);
  }
}
