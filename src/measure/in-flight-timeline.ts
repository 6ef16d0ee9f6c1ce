import { type Nanoseconds, NS_PER_SECOND } from "../core/clock.ts";
import { type RequestRecord, UNAVAILABLE } from "../core/request-record.ts";
import type { MeasurementWindow } from "./window.ts";

/** Requests in flight on each worker over a window, as means of equal stretches of time. */
export interface InFlightTimeline {
  readonly workers: readonly string[];
  readonly stretchSeconds: number;
  /** One row per worker, one value per stretch. */
  readonly means: readonly Float32Array[];
}

/**
 * Requests in flight on a worker at any moment: those that went to it and had not ended. From all records of a run, since
 * those of the warm-up may still be in flight.
 */
export class InFlightCounts {
  readonly workers: readonly string[];
  readonly #indexOf: Map<string, number>;
  readonly #arrivals: Float64Array[];
  readonly #departures: Float64Array[];

  constructor(records: Iterable<RequestRecord>, workers: readonly string[]) {
    this.workers = workers;
    this.#indexOf = new Map(workers.map((worker, index) => [worker, index]));
    const arrivals: number[][] = workers.map(() => []);
    const departures: number[][] = workers.map(() => []);
    for (const { worker, placedNs, sentNs, endNs } of records) {
      const index = worker === undefined ? undefined : this.#indexOf.get(worker);
      const fromNs = placedNs ?? sentNs;
      if (index === undefined || fromNs === undefined) continue;
      arrivals[index].push(fromNs);
      if (endNs !== undefined) departures[index].push(endNs);
    }
    this.#arrivals = arrivals.map((times) => Float64Array.from(times).sort());
    this.#departures = departures.map((times) => Float64Array.from(times).sort());
  }

  indexOf(worker: string): number | undefined {
    return this.#indexOf.get(worker);
  }

  /** How many are in flight on a worker at a moment, what arrives at that very moment included. */
  at(worker: number, ns: Nanoseconds): number {
    return countUpTo(this.#arrivals[worker], ns) - countUpTo(this.#departures[worker], ns);
  }

  /** Means over equal stretches of a window. */
  timeline({ startNs, endNs }: MeasurementWindow, stretches: number): InFlightTimeline {
    const stretchNs = (endNs - startNs) / stretches;
    const means = this.workers.map((_, worker) => {
      const requestNs = new Float64Array(stretches);
      const add = (times: Float64Array, sign: number): void => {
        for (const ns of times) {
          if (ns >= endNs) break;
          // From here on the count is one more, or one less, until the end.
          const at = Math.max(0, ns - startNs);
          const stretch = Math.min(stretches - 1, Math.floor(at / stretchNs));
          requestNs[stretch] += sign * ((stretch + 1) * stretchNs - at);
          if (stretch + 1 < stretches) step[stretch + 1] += sign;
        }
      };
      const step = new Float64Array(stretches + 1);
      add(this.#arrivals[worker], 1);
      add(this.#departures[worker], -1);
      let standing = 0;
      return Float32Array.from(requestNs, (ns, stretch) => {
        standing += step[stretch];
        return ns / stretchNs + standing;
      });
    });
    return { workers: this.workers, stretchSeconds: stretchNs / NS_PER_SECOND, means };
  }
}

/** The workers that records name, in order of their names; undefined if the target does not say. */
export function workersOf(records: Iterable<RequestRecord>): string[] | undefined {
  const names = new Set<string>();
  for (const { worker } of records) {
    if (worker === UNAVAILABLE) return undefined;
    if (worker !== undefined) names.add(worker);
  }
  return names.size === 0 ? undefined : [...names].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

function countUpTo(sorted: Float64Array, limit: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
