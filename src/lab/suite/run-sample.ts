import { NS_PER_MS } from "../../core/clock.ts";
import { type RequestRecord, UNAVAILABLE } from "../../core/request-record.ts";
import { e2eNs, tpotNs, ttftNs } from "../../measure/latencies.ts";
import { keepsSlo, type Slo } from "../../measure/slo.ts";
import { accountInWindow, isInWindow, type MeasurementWindow } from "../../measure/window.ts";

/** What one run says of one arm: a number of each kind for every request of the window, +∞ if it did not complete. */
export interface RunSample {
  readonly ttftMs: Float64Array;
  readonly e2eMs: Float64Array;
  /** NaN for an answer of one token, which has none. */
  readonly tpotMs: Float64Array;
  /** Which part of the window each arrived in. */
  readonly parts: Uint8Array;
  readonly completed: number;
  readonly keptSlo: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
}

/** Samples the requests of a window, cut into equal parts by intended arrival. */
export function sampleRun(
  records: readonly RequestRecord[],
  window: MeasurementWindow,
  parts: number,
  slo: Slo,
): RunSample {
  const own = records.filter((record) => isInWindow(record, window));
  const ttftMs = new Float64Array(own.length).fill(Infinity);
  const e2eMs = new Float64Array(own.length).fill(Infinity);
  const tpotMs = new Float64Array(own.length).fill(Infinity);
  const partOf = new Uint8Array(own.length);
  const sums = { completed: 0, keptSlo: 0, promptTokens: 0, cachedTokens: 0, outputTokens: 0 };
  const partNs = (window.endNs - window.startNs) / parts;
  for (const [at, record] of own.entries()) {
    partOf[at] = Math.min(parts - 1, Math.floor((record.intendedNs - window.startNs) / partNs));
    if (accountInWindow(record, window) !== "completed") continue;
    ttftMs[at] = inMs(ttftNs(record));
    e2eMs[at] = inMs(e2eNs(record));
    tpotMs[at] = (tpotNs(record) ?? Number.NaN) / NS_PER_MS;
    sums.completed += 1;
    if (keepsSlo(record, slo)) sums.keptSlo += 1;
    sums.promptTokens += record.promptTokens;
    sums.outputTokens += record.outputTokens;
    if (record.observedCachedTokens !== UNAVAILABLE) sums.cachedTokens += record.observedCachedTokens;
  }
  return { ttftMs, e2eMs, tpotMs, parts: partOf, ...sums };
}

function inMs(ns: number | undefined): number {
  return (ns ?? Infinity) / NS_PER_MS;
}
