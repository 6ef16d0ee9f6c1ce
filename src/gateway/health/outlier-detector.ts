import { RollingCount } from "../rolling-count.ts";

/** How a request fared with a worker. */
export type AttemptVerdict = "success" | "failure" | "timeout";

export interface OutlierOptions {
  /** How far back requests count. */
  readonly windowMs: number;
  /** Requests a worker must have had in the window before its share says anything. */
  readonly minRequests: number;
  /** How much larger its share of failures must be than that of all others together. */
  readonly excessShare: number;
  /** How many standard deviations that must be, so that few requests prove little. */
  readonly deviations: number;
  /** Requests in a row that must run into a deadline. */
  readonly timeoutsInRow: number;
  /** Share of the fleet that may be shut out for this, with whoever is shut out anyway. */
  readonly maxEjectedShare: number;
}

export const DEFAULT_OUTLIERS: OutlierOptions = {
  windowMs: 30_000,
  minRequests: 10,
  excessShare: 0.2,
  deviations: 3,
  timeoutsInRow: 2,
  maxEjectedShare: 0.5,
};

interface Counts {
  readonly requests: RollingCount;
  readonly failures: RollingCount;
  timeoutsInRow: number;
}

/**
 * Finds workers that fail far more often than the rest of the fleet, without ever failing often enough in a row; and workers
 * that let requests run into their deadlines, each of which costs a client minutes. Who is slow is the policy's business.
 */
export class OutlierDetector {
  readonly #options: OutlierOptions;
  readonly #workers = new Map<string, Counts>();

  constructor(options: OutlierOptions = DEFAULT_OUTLIERS) {
    this.#options = options;
  }

  /** Notes how a request fared, and says in words why its worker should be ejected, if it should. */
  observed(worker: string, verdict: AttemptVerdict, nowMs: number): string | undefined {
    const counts = this.#counts(worker);
    counts.requests.add(1, nowMs);
    if (verdict === "success") {
      counts.timeoutsInRow = 0;
      return undefined;
    }
    counts.failures.add(1, nowMs);
    counts.timeoutsInRow = verdict === "timeout" ? counts.timeoutsInRow + 1 : 0;
    if (counts.timeoutsInRow >= this.#options.timeoutsInRow) {
      return `${counts.timeoutsInRow} requests in a row ran into a deadline`;
    }
    return this.#failsMore(worker, counts, nowMs);
  }

  /** Whether one more of `workers` may be shut out when `excluded` are already. */
  mayEject(workers: number, excluded: number): boolean {
    return excluded + 1 <= Math.floor(workers * this.#options.maxEjectedShare);
  }

  /** Begins anew with a worker, which was ejected or has left. */
  forget(worker: string): void {
    this.#workers.delete(worker);
  }

  #failsMore(worker: string, counts: Counts, nowMs: number): string | undefined {
    const { minRequests, excessShare, deviations } = this.#options;
    const own = { requests: counts.requests.sum(nowMs), failures: counts.failures.sum(nowMs) };
    const others = { requests: 0, failures: 0 };
    for (const [name, { requests, failures }] of this.#workers) {
      if (name === worker) continue;
      others.requests += requests.sum(nowMs);
      others.failures += failures.sum(nowMs);
    }
    if (own.requests < minRequests || others.requests < minRequests) return undefined;
    const excess = own.failures / own.requests - others.failures / others.requests;
    // Of the difference of two shares, if both were those of one fleet that is all alike.
    const share = (own.failures + others.failures) / (own.requests + others.requests);
    const deviation = Math.sqrt(share * (1 - share) * (1 / own.requests + 1 / others.requests));
    if (excess < excessShare || excess < deviations * deviation) return undefined;
    const percent = (part: { failures: number; requests: number }): string =>
      `${((100 * part.failures) / part.requests).toFixed(0)} %`;
    return `${percent(own)} of its requests failed, of the others' ${percent(others)}`;
  }

  #counts(worker: string): Counts {
    const { windowMs } = this.#options;
    let counts = this.#workers.get(worker);
    if (counts === undefined) {
      counts = { requests: new RollingCount(windowMs), failures: new RollingCount(windowMs), timeoutsInRow: 0 };
      this.#workers.set(worker, counts);
    }
    return counts;
  }
}
