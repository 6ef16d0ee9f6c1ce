import { NS_PER_SECOND, type Nanoseconds } from "../core/clock.ts";
import type { RequestRecord } from "../core/request-record.ts";
import { accountInWindow, isInWindow, type MeasurementWindow } from "./window.ts";

/** How much was asked and how much was served, per second. */
export interface ServedRates {
  /** Requests of the window over its length. */
  readonly offeredPerSecond: number;
  /** Completions that fell into the window, whenever their requests came. */
  readonly requestsPerSecond: number;
  /** Output tokens that fell into the window, also of requests that broke off later. */
  readonly outputTokensPerSecond: number;
  /**
   * Requests of the window that completed, over the time from its first intended send to the last of their ends: as
   * AIPerf.
   */
  readonly requestsPerSecondOverSpan: number;
  readonly outputTokensPerSecondOverSpan: number;
}

/** Rates in a window, from all records of the run: what came in the warm-up may be served in the window. */
export function servedRates(records: Iterable<RequestRecord>, window: MeasurementWindow): ServedRates {
  let offered = 0;
  let completions = 0;
  let tokens = 0;
  let ownCompletions = 0;
  let ownTokens = 0;
  let firstNs = Infinity;
  let lastNs = -Infinity;
  for (const record of records) {
    const { endNs } = record;
    if (record.account === "completed" && endNs !== undefined && endNs >= window.startNs && endNs < window.endNs) {
      completions += 1;
    }
    tokens += tokensBefore(record, window.endNs) - tokensBefore(record, window.startNs);
    if (!isInWindow(record, window)) continue;
    offered += 1;
    firstNs = Math.min(firstNs, record.intendedNs);
    if (accountInWindow(record, window) !== "completed") continue;
    ownCompletions += 1;
    ownTokens += record.outputTokens;
    lastNs = Math.max(lastNs, endNs ?? lastNs);
  }
  const seconds = (window.endNs - window.startNs) / NS_PER_SECOND;
  const span = lastNs > firstNs ? (lastNs - firstNs) / NS_PER_SECOND : Infinity;
  return {
    offeredPerSecond: offered / seconds,
    requestsPerSecond: completions / seconds,
    outputTokensPerSecond: tokens / seconds,
    requestsPerSecondOverSpan: ownCompletions / span,
    outputTokensPerSecondOverSpan: ownTokens / span,
  };
}

/**
 * Output tokens before a time, taken to come evenly between first and last content. Only answers that stream across an
 * edge of the window are estimated by it, and a file that keeps no token times gives the same rates as the run itself.
 */
function tokensBefore(record: RequestRecord, beforeNs: Nanoseconds): number {
  const { firstContentNs, lastContentNs, outputTokens } = record;
  if (firstContentNs === undefined || beforeNs <= firstContentNs) return 0;
  if (lastContentNs === undefined || beforeNs > lastContentNs) return outputTokens;
  return 1 + ((outputTokens - 1) * (beforeNs - firstContentNs)) / (lastContentNs - firstContentNs);
}
