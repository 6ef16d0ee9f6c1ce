import { RollingCount } from "./rolling-count.ts";

export interface RetryBudgetOptions {
  /** Retries allowed for each request that comes, on the average. */
  readonly share: number;
  /** Retries a second that are allowed however few requests come. */
  readonly perSecond: number;
}

export const DEFAULT_RETRY_BUDGET: RetryBudgetOptions = { share: 0.2, perSecond: 10 };

const WINDOW_MS = 10_000;

/**
 * Bounds retries over all requests. One request may be tried several times; if all of them are, because the whole fleet is in
 * trouble, retries multiply the load that is the trouble. So they are a share of what came lately, plus a few.
 */
export class RetryBudget {
  readonly #offered = new RollingCount(WINDOW_MS);
  readonly #retries = new RollingCount(WINDOW_MS);
  #options: RetryBudgetOptions;

  constructor(options: RetryBudgetOptions = DEFAULT_RETRY_BUDGET) {
    this.#options = options;
  }

  /** Changes the bounds; what was used so far stays used. */
  configure(options: RetryBudgetOptions): void {
    this.#options = options;
  }

  offered(nowMs: number): void {
    this.#offered.add(1, nowMs);
  }

  /** Whether another retry is within the budget. */
  hasRoom(nowMs: number): boolean {
    const { share, perSecond } = this.#options;
    const allowed = share * this.#offered.sum(nowMs) + (perSecond * WINDOW_MS) / 1000;
    return this.#retries.sum(nowMs) + 1 <= allowed;
  }

  retried(nowMs: number): void {
    this.#retries.add(1, nowMs);
  }
}
