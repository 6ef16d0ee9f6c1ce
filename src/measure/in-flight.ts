import type { Nanoseconds } from "../core/clock.ts";
import { type RequestRecord, UNAVAILABLE } from "../core/request-record.ts";
import type { MeasurementWindow } from "./window.ts";

/** How evenly requests lay on the workers over a window; all means are over time. */
export interface LoadBalance {
  readonly workers: readonly WorkerInFlight[];
  /** Largest minus smallest number in flight over the workers, at the same moment. */
  readonly spread: { readonly mean: number; readonly p95: number; readonly max: number };
  /** Largest worker mean over the mean of all; 1 is even, 0 if nothing was in flight. */
  readonly meanSkew: number;
}

export interface WorkerInFlight {
  readonly worker: string;
  /** Requests of the window that were placed on it, and their share of all placed. */
  readonly requests: number;
  readonly share: number;
  readonly inFlightMean: number;
  readonly inFlightMax: number;
}

/**
 * Requests going to and leaving workers, in order of time; what leaves comes before what arrives at the same moment.
 */
export interface InFlightSteps {
  readonly timesNs: Float64Array;
  readonly worker: Uint32Array;
  readonly delta: Int8Array;
}

/** The steps of all workers' in-flight counts; undefined if the target does not say which worker served a request. */
export function inFlightSteps(records: Iterable<RequestRecord>, workers: readonly string[]): InFlightSteps | undefined {
  const indexOf = new Map(workers.map((worker, index) => [worker, index]));
  const arrivals = new Moments();
  const departures = new Moments();
  for (const record of records) {
    const fromNs = record.placedNs ?? record.sentNs;
    if (record.worker === undefined || fromNs === undefined) continue;
    if (record.worker === UNAVAILABLE) return undefined;
    const index = indexOf.get(record.worker);
    if (index === undefined) continue;
    arrivals.add(fromNs, index);
    if (record.endNs !== undefined) departures.add(record.endNs, index);
  }
  return mergeMoments(arrivals, departures);
}

function mergeMoments(arrivals: Moments, departures: Moments): InFlightSteps {
  const coming = arrivals.order();
  const leaving = departures.order();
  const length = coming.length + leaving.length;
  const steps = { timesNs: new Float64Array(length), worker: new Uint32Array(length), delta: new Int8Array(length) };
  for (let i = 0, c = 0, l = 0; i < length; i++) {
    const leavesNext =
      c === coming.length || (l < leaving.length && departures.timesNs[leaving[l]] <= arrivals.timesNs[coming[c]]);
    const from = leavesNext ? departures : arrivals;
    const at = leavesNext ? leaving[l++] : coming[c++];
    steps.timesNs[i] = from.timesNs[at];
    steps.worker[i] = from.workers[at];
    steps.delta[i] = leavesNext ? -1 : 1;
  }
  return steps;
}

/** Moments at which something happens to a worker; records mostly come in their order, and then nothing is sorted. */
class Moments {
  readonly timesNs: number[] = [];
  readonly workers: number[] = [];
  #isSorted = true;

  add(ns: Nanoseconds, worker: number): void {
    if (this.timesNs.length > 0 && ns < this.timesNs[this.timesNs.length - 1]) this.#isSorted = false;
    this.timesNs.push(ns);
    this.workers.push(worker);
  }

  order(): Uint32Array {
    const order = Uint32Array.from(this.timesNs, (_, i) => i);
    return this.#isSorted ? order : order.sort((a, b) => this.timesNs[a] - this.timesNs[b]);
  }
}

/**
 * In-flight means, peaks and spread in a window, from all records of the run (those of the warm-up may still be in
 * flight).
 */
export function loadBalance(
  records: readonly RequestRecord[],
  workers: readonly string[],
  window: MeasurementWindow,
): LoadBalance | undefined {
  const steps = inFlightSteps(records, workers);
  if (steps === undefined || workers.length === 0) return undefined;
  const sweep = new Sweep(workers.length);
  let atNs = window.startNs;
  for (let i = 0; i < steps.timesNs.length && steps.timesNs[i] < window.endNs; i++) {
    if (steps.timesNs[i] > atNs) {
      sweep.hold(steps.timesNs[i] - atNs);
      atNs = steps.timesNs[i];
    }
    sweep.change(steps.worker[i], steps.delta[i]);
  }
  sweep.hold(window.endNs - atNs);
  return sweep.balance(workers, placements(records, workers, window), window.endNs - window.startNs);
}

function placements(
  records: readonly RequestRecord[],
  workers: readonly string[],
  window: MeasurementWindow,
): number[] {
  const indexOf = new Map(workers.map((worker, index) => [worker, index]));
  const counts = workers.map(() => 0);
  for (const { worker, intendedNs } of records) {
    if (worker === undefined || intendedNs < window.startNs || intendedNs >= window.endNs) continue;
    const index = indexOf.get(worker);
    if (index !== undefined) counts[index] += 1;
  }
  return counts;
}

/** Integrates the counts over time; how many workers stand at each level is kept, so that the spread costs no scan. */
class Sweep {
  readonly #inFlight: Int32Array;
  readonly #sinceNs: Float64Array;
  readonly #requestNs: Float64Array;
  readonly #peak: Int32Array;
  readonly #workersAt: number[];
  readonly #spreadNs: number[] = [];
  #lowest = 0;
  #highest = 0;
  #elapsedNs = 0;

  constructor(workers: number) {
    this.#inFlight = new Int32Array(workers);
    this.#sinceNs = new Float64Array(workers);
    this.#requestNs = new Float64Array(workers);
    this.#peak = new Int32Array(workers);
    this.#workersAt = [workers];
  }

  /** All counts stay as they are for a while. */
  hold(ns: Nanoseconds): void {
    const spread = this.#highest - this.#lowest;
    this.#spreadNs[spread] = (this.#spreadNs[spread] ?? 0) + ns;
    this.#elapsedNs += ns;
  }

  change(worker: number, delta: number): void {
    this.#settle(worker);
    const before = this.#inFlight[worker];
    const after = before + delta;
    this.#inFlight[worker] = after;
    this.#workersAt[before] -= 1;
    this.#workersAt[after] = (this.#workersAt[after] ?? 0) + 1;
    if (after > this.#highest) this.#highest = after;
    else if (before === this.#highest && this.#workersAt[before] === 0) this.#highest = after;
    if (after < this.#lowest) this.#lowest = after;
    else if (before === this.#lowest && this.#workersAt[before] === 0) this.#lowest = after;
  }

  balance(workers: readonly string[], requests: readonly number[], windowNs: Nanoseconds): LoadBalance {
    let placed = 0;
    let totalNs = 0;
    let mostNs = 0;
    for (let i = 0; i < workers.length; i++) {
      this.#settle(i);
      placed += requests[i];
      totalNs += this.#requestNs[i];
      mostNs = Math.max(mostNs, this.#requestNs[i]);
    }
    return {
      workers: workers.map((worker, i) => ({
        worker,
        requests: requests[i],
        share: placed === 0 ? 0 : requests[i] / placed,
        inFlightMean: this.#requestNs[i] / windowNs,
        inFlightMax: this.#peak[i],
      })),
      spread: this.#spread(windowNs),
      meanSkew: totalNs === 0 ? 0 : (mostNs * workers.length) / totalNs,
    };
  }

  /** Adds up a worker's time at its present count; counts that lasted no time are no peaks. */
  #settle(worker: number): void {
    const ns = this.#elapsedNs - this.#sinceNs[worker];
    if (ns === 0) return;
    this.#requestNs[worker] += ns * this.#inFlight[worker];
    if (this.#inFlight[worker] > this.#peak[worker]) this.#peak[worker] = this.#inFlight[worker];
    this.#sinceNs[worker] = this.#elapsedNs;
  }

  #spread(windowNs: Nanoseconds): LoadBalance["spread"] {
    let weightedNs = 0;
    let belowNs = 0;
    let p95 = 0;
    let max = 0;
    this.#spreadNs.forEach((ns, spread) => {
      if (ns === 0) return;
      if (belowNs < 0.95 * windowNs) p95 = spread;
      belowNs += ns;
      weightedNs += ns * spread;
      max = spread;
    });
    return { mean: weightedNs / windowNs, p95, max };
  }
}
