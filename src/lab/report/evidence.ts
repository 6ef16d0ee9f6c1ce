import { ACCOUNTS } from "../../core/accounts.ts";
import { NS_PER_MS, NS_PER_SECOND } from "../../core/clock.ts";
import { type RequestRecord, UNAVAILABLE, type Unavailable } from "../../core/request-record.ts";
import { InFlightCounts, type InFlightTimeline, workersOf } from "../../measure/in-flight-timeline.ts";
import { e2eNs, scheduleLagNs, tpotNs, ttftNs } from "../../measure/latencies.ts";
import { servedRates } from "../../measure/served-rates.ts";
import { keepsSlo, type Slo } from "../../measure/slo.ts";
import { accountInWindow, isInWindow, type MeasurementWindow, subWindows } from "../../measure/window.ts";

/** Equal parts of a window that a difference is tested without, in turn. */
export const PARTS_PER_RUN = 10;
/** Stretches of a window that figures show. */
const STRETCHES = 100;

/**
 * The requests of one cell's window in columns: all that tables need, in some hundred bytes each, so that a sweep of
 * hundreds of cells fits in memory. +∞ is a request that did not complete; NaN is what has no such time.
 */
export interface RequestColumns {
  readonly length: number;
  /** Number of the request's id in the report. */
  readonly id: Uint32Array;
  /** Seconds after the window began, and the tenth of it. */
  readonly arrivedSeconds: Float64Array;
  readonly part: Uint8Array;
  /** Index in `ACCOUNTS`. */
  readonly account: Uint8Array;
  readonly keptSlo: Uint8Array;
  readonly ttftMs: Float64Array;
  readonly tpotMs: Float64Array;
  readonly e2eMs: Float64Array;
  /** Where TTFT went: late at the client, from there to a worker, on the worker. */
  readonly lagMs: Float64Array;
  readonly routerMs: Float64Array;
  readonly workerMs: Float64Array;
  readonly promptTokens: Float64Array;
  readonly outputTokens: Float64Array;
  readonly predictedTokens: Float64Array;
  readonly cachedTokens: Float64Array;
  readonly turn: Uint16Array;
  /** Index in the cell's workers; -1 where unknown. */
  readonly worker: Int16Array;
  /** In flight on its worker when it was placed, itself included; -1 where unknown. */
  readonly inFlight: Int32Array;
  /** 1 if the conversation's turn before went to another worker, 0 if to the same, -1 if there is none. */
  readonly moved: Int8Array;
}

/** What the records of a cell say beyond its entry in the results. */
export interface CellEvidence {
  readonly columns: RequestColumns;
  readonly workers: readonly string[];
  readonly timeline: InFlightTimeline | undefined;
  /** Output tokens per second that fell into each part of the window, whenever their requests came. */
  readonly tokensPerSecondByPart: Float64Array;
}

/** Gives each id one number, the same in every cell, so that requests can be paired without keeping their ids. */
export class IdNumbers {
  readonly #numbers = new Map<string, number>();

  of(id: string): number {
    const known = this.#numbers.get(id);
    if (known !== undefined) return known;
    const number = this.#numbers.size;
    this.#numbers.set(id, number);
    return number;
  }
}

/** Collects the evidence of a cell from all its records, warm-up included. */
export function collectEvidence(
  records: readonly RequestRecord[],
  window: MeasurementWindow,
  slo: Slo,
  ids: IdNumbers,
): CellEvidence {
  const own = records.filter((record) => isInWindow(record, window)).sort((a, b) => a.intendedNs - b.intendedNs);
  const workers = workersOf(records);
  const counts = workers === undefined ? undefined : new InFlightCounts(records, workers);
  const moves = movesOf(records);
  const columns = emptyColumns(own.length);
  const partNs = (window.endNs - window.startNs) / PARTS_PER_RUN;
  for (const [at, record] of own.entries()) {
    const account = accountInWindow(record, window);
    const isComplete = account === "completed";
    const worker = record.worker === undefined ? undefined : counts?.indexOf(record.worker);
    const placedNs = record.placedNs;
    columns.id[at] = ids.of(record.id);
    columns.arrivedSeconds[at] = (record.intendedNs - window.startNs) / NS_PER_SECOND;
    columns.part[at] = Math.min(PARTS_PER_RUN - 1, Math.floor((record.intendedNs - window.startNs) / partNs));
    columns.account[at] = ACCOUNTS.indexOf(account);
    columns.keptSlo[at] = isComplete && keepsSlo(record, slo) ? 1 : 0;
    columns.ttftMs[at] = isComplete ? milliseconds(ttftNs(record) ?? Infinity) : Infinity;
    columns.e2eMs[at] = isComplete ? milliseconds(e2eNs(record) ?? Infinity) : Infinity;
    columns.tpotMs[at] = isComplete ? milliseconds(tpotNs(record)) : Infinity;
    columns.lagMs[at] = milliseconds(scheduleLagNs(record));
    columns.routerMs[at] = milliseconds(difference(placedNs, record.sentNs));
    columns.workerMs[at] = isComplete ? milliseconds(difference(record.firstContentNs, placedNs)) : Number.NaN;
    columns.promptTokens[at] = record.promptTokens;
    columns.outputTokens[at] = record.outputTokens;
    columns.predictedTokens[at] = numberOrNaN(record.predictedCachedTokens);
    columns.cachedTokens[at] = numberOrNaN(record.observedCachedTokens);
    columns.turn[at] = record.turn;
    columns.worker[at] = worker ?? -1;
    columns.inFlight[at] =
      worker === undefined || counts === undefined
        ? -1
        : counts.at(worker, placedNs ?? record.sentNs ?? record.intendedNs);
    columns.moved[at] = moves.get(record) ?? -1;
  }
  const parts = subWindows(window, PARTS_PER_RUN);
  return {
    columns,
    workers: workers ?? [],
    timeline: counts?.timeline(window, STRETCHES),
    tokensPerSecondByPart: Float64Array.from(parts, (part) => servedRates(records, part).outputTokensPerSecond),
  };
}

/** Whether each turn went where the turn before it went. */
function movesOf(records: readonly RequestRecord[]): Map<RequestRecord, number> {
  const moves = new Map<RequestRecord, number>();
  const before = new Map<string, string>();
  const inOrder = records
    .filter(({ session, worker }) => session !== undefined && worker !== undefined && worker !== UNAVAILABLE)
    .sort((a, b) => a.turn - b.turn);
  for (const record of inOrder) {
    const session = record.session ?? "";
    const last = before.get(session);
    if (last !== undefined && record.turn > 0) moves.set(record, last === record.worker ? 0 : 1);
    before.set(session, record.worker ?? "");
  }
  return moves;
}

function emptyColumns(length: number): RequestColumns {
  return {
    length,
    id: new Uint32Array(length),
    arrivedSeconds: new Float64Array(length),
    part: new Uint8Array(length),
    account: new Uint8Array(length),
    keptSlo: new Uint8Array(length),
    ttftMs: new Float64Array(length),
    tpotMs: new Float64Array(length),
    e2eMs: new Float64Array(length),
    lagMs: new Float64Array(length),
    routerMs: new Float64Array(length),
    workerMs: new Float64Array(length),
    promptTokens: new Float64Array(length),
    outputTokens: new Float64Array(length),
    predictedTokens: new Float64Array(length),
    cachedTokens: new Float64Array(length),
    turn: new Uint16Array(length),
    worker: new Int16Array(length),
    inFlight: new Int32Array(length),
    moved: new Int8Array(length),
  };
}

function difference(later: number | undefined, earlier: number | undefined): number | undefined {
  return later === undefined || earlier === undefined ? undefined : later - earlier;
}

function milliseconds(ns: number | undefined): number {
  return (ns ?? Number.NaN) / NS_PER_MS;
}

function numberOrNaN(value: number | Unavailable): number {
  return value === UNAVAILABLE ? Number.NaN : value;
}
