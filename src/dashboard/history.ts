import type { RollingWindow } from "./rolling-window.ts";

/** What a moment of the charts consists of; a row has its values in this order. */
export const HISTORY_COLUMNS = [
  "atMs",
  "concurrency",
  "ttftP50Ms",
  "ttftP95Ms",
  "ttftP99Ms",
  "tpotP50Ms",
  "tpotP95Ms",
  "tpotP99Ms",
  "itlP50Ms",
  "itlP95Ms",
  "itlP99Ms",
  "e2eP50Ms",
  "e2eP95Ms",
  "e2eP99Ms",
  "requestsPerSecond",
  "outputTokensPerSecond",
  "hitShare",
  "errorShare",
  "inFlight",
] as const;

export type HistoryColumn = (typeof HISTORY_COLUMNS)[number];

/** One moment; null where there was nothing to tell. */
export type HistoryRow = readonly (number | null)[];

/** How long charts go back. */
export const HISTORY_MS: number = 10 * 60 * 1000;

/** The moment of a snapshot as a row. */
export function historyRow(
  atMs: number,
  concurrency: number | null,
  isRunning: boolean,
  window: RollingWindow,
): HistoryRow {
  const { ttftMs, tpotMs, itlMs, e2eMs } = window;
  const latencies = [ttftMs, tpotMs, itlMs, e2eMs].flatMap(({ p50, p95, p99 }) => [p50, p95, p99]);
  // A rate of 0 before anything was sent is not a measurement.
  const hasRates = isRunning || window.requestsPerSecond > 0 || window.inFlight > 0;
  return [
    atMs,
    concurrency,
    ...latencies,
    hasRates ? window.requestsPerSecond : null,
    hasRates ? window.outputTokensPerSecond : null,
    window.hitShare,
    window.errorShare,
    hasRates ? window.inFlight : null,
  ];
}

/** The last minutes, a row every so often: what a page needs that comes late. */
export class History {
  readonly #everyMs: number;
  #rows: HistoryRow[] = [];

  constructor(everyMs = 1000) {
    this.#everyMs = everyMs;
  }

  get rows(): readonly HistoryRow[] {
    return this.#rows;
  }

  /** Keeps a row unless the last one is too young. */
  add(row: HistoryRow): void {
    const atMs = row[0] ?? 0;
    const lastMs = this.#rows.at(-1)?.[0] ?? Number.NEGATIVE_INFINITY;
    if (atMs - lastMs < this.#everyMs) return;
    this.#rows.push(row);
    if ((this.#rows[0][0] ?? 0) < atMs - HISTORY_MS)
      this.#rows = this.#rows.filter(([ms]) => (ms ?? 0) >= atMs - HISTORY_MS);
  }
}
