import { type RequestRecord, UNAVAILABLE, type Unavailable } from "../core/request-record.ts";
import { isInWindow, type MeasurementWindow } from "./window.ts";

/** Shares of prompt tokens that came, or should have come, from a cache. */
export interface CacheShares {
  readonly predicted: number | Unavailable;
  readonly observed: number | Unavailable;
  /** Requests that each share speaks for: those that were placed, those whose engine answered. */
  readonly predictedRequests: number;
  readonly observedRequests: number;
}

/** Predicted and observed cache shares over the requests of a window for which they are known. */
export function cacheShares(records: Iterable<RequestRecord>, window: MeasurementWindow): CacheShares {
  const predicted = new TokenShare();
  const observed = new TokenShare();
  for (const record of records) {
    if (!isInWindow(record, window)) continue;
    predicted.add(record.predictedCachedTokens, record.promptTokens);
    observed.add(record.observedCachedTokens, record.promptTokens);
  }
  return {
    predicted: predicted.share(),
    observed: observed.share(),
    predictedRequests: predicted.requests,
    observedRequests: observed.requests,
  };
}

class TokenShare {
  requests = 0;
  #cached = 0;
  #prompt = 0;

  add(cachedTokens: number | Unavailable, promptTokens: number): void {
    if (cachedTokens === UNAVAILABLE) return;
    this.requests += 1;
    this.#cached += cachedTokens;
    this.#prompt += promptTokens;
  }

  share(): number | Unavailable {
    return this.#prompt === 0 ? UNAVAILABLE : this.#cached / this.#prompt;
  }
}
