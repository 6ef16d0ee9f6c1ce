import type { CellRates } from "./cell.ts";

/** What was served per second. */
export interface Throughput {
  readonly tokens: number | undefined;
  readonly requests: number | undefined;
}

interface Rated {
  readonly rates: CellRates;
}

/**
 * The throughput that everything which stands side by side has: in the window, or, as soon as one has none there, from the
 * first request to the last answer for all. One in the window beside one over the span would be a difference of clocks.
 */
export function throughputOf(all: readonly Rated[]): (one: Rated) => Throughput {
  const isInWindow = all.every(({ rates }) => rates.outputTokensPerSecond !== undefined);
  return ({ rates }) =>
    isInWindow
      ? { tokens: rates.outputTokensPerSecond, requests: rates.requestsPerSecond }
      : { tokens: rates.outputTokensPerSecondOverSpan, requests: rates.requestsPerSecondOverSpan };
}
