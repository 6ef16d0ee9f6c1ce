import { NS_PER_SECOND, type Nanoseconds } from "../../core/clock.ts";
import { WarmpathError } from "../../core/errors.ts";
import type { RequestRecord, Unavailable } from "../../core/request-record.ts";
import type { MeasurementWindow } from "../../measure/window.ts";
import { buildCell } from "../results/build-cell.ts";
import type { CellResult, WorkerStats } from "../results/types.ts";
import type { Cell } from "./cells.ts";
import type { Experiment } from "./types.ts";

const NS_PER_MICROSECOND = 1000;

/** What a target gives back of a cell. */
export interface CellOutcome {
  /** All requests, warm-up included. */
  readonly records: readonly RequestRecord[];
  readonly workers: readonly WorkerStats[];
  readonly cacheCeiling: number | Unavailable;
  readonly window: MeasurementWindow;
  /** Rows of a replayed trace that were never sent; undefined where no trace is replayed. */
  readonly unsentRows?: number | undefined;
  /** When a trace had nothing more to send, where that was long before the end of the window. */
  readonly ranOutSeconds?: number | undefined;
}

/** A window may go on for this share of its length after the last row of a trace before it is worth a word. */
const IDLE_SHARE = 0.05;

/** When a trace of so many rows had nothing more to send; undefined if that was about when the window ended, or later. */
export function ranOutSeconds(
  rows: number | undefined,
  records: readonly RequestRecord[],
  { startNs, endNs }: MeasurementWindow,
): number | undefined {
  if (rows === undefined || records.length < rows) return undefined;
  const lastNs = records.reduce((latest, { intendedNs }) => Math.max(latest, intendedNs), 0);
  return endNs - lastNs > IDLE_SHARE * (endNs - startNs) ? lastNs / NS_PER_SECOND : undefined;
}

/** Runs one cell somewhere: on the twin, a local fleet, or an endpoint. */
export type CellRunner = (cell: Cell) => CellOutcome;

/**
 * What is measured of a cell; `lastDueNs` is when a schedule ends by itself, with its last request in the window; Infinity
 * leaves the window open until `endedWindow`. Edges are whole microseconds, as results are written: whoever reads them finds
 * the same requests between them.
 */
export function cellWindow(experiment: Experiment, lastDueNs: Nanoseconds | undefined): MeasurementWindow {
  const { warmUpSeconds, windowSeconds, drainSeconds, cacheState, carryOverSeconds } = experiment;
  const before = warmUpSeconds + (cacheState === "carried-over" ? carryOverSeconds : 0);
  const startNs = microsecondFrom(before * NS_PER_SECOND);
  const endNs = windowSeconds === undefined ? (lastDueNs ?? startNs) + 1 : startNs + windowSeconds * NS_PER_SECOND;
  return notEmpty({ startNs, endNs: microsecondFrom(endNs), drainNs: Math.round(drainSeconds * NS_PER_SECOND) });
}

/** The window whose last request was due at a time, where only that it has come has shown it. */
export function endedWindow(window: MeasurementWindow, lastDueNs: Nanoseconds): MeasurementWindow {
  return window.endNs < Infinity ? window : notEmpty({ ...window, endNs: microsecondFrom(lastDueNs + 1) });
}

function notEmpty(window: MeasurementWindow): MeasurementWindow {
  const { startNs, endNs } = window;
  if (endNs > startNs) return window;
  const [warmUp, end] = [startNs, endNs].map((ns) => (ns / NS_PER_SECOND).toFixed(1));
  const why = `the trace is over after ${end} s, and the warm-up takes ${warmUp} s: nothing is left to measure`;
  throw new WarmpathError("WP_INVALID_INPUT", `warmUpSeconds: ${why}`);
}

/** The first whole microsecond that is not before a time. */
export function microsecondFrom(ns: Nanoseconds): Nanoseconds {
  // Seconds as they are written, such as 0.3, are a fraction of a nanosecond more than they mean.
  return Math.ceil(Math.round(ns) / NS_PER_MICROSECOND) * NS_PER_MICROSECOND;
}

/** A cell that was run: what its target gave, and its entry in results.json. */
export interface MeasuredCell {
  readonly outcome: CellOutcome;
  readonly result: CellResult;
}

/** Runs a cell wherever `run` runs it, and measures what came of it. */
export function measureCell(experiment: Experiment, cell: Cell, run: CellRunner): MeasuredCell {
  const outcome = run(cell);
  const result = buildCell({
    arm: cell.arm.name,
    policy: cell.arm.policy,
    level: cell.level,
    run: cell.run,
    seed: cell.seeds.run,
    records: outcome.records,
    window: outcome.window,
    slo: experiment.slo,
    snapshots: experiment.snapshots,
    workers: outcome.workers,
    cacheCeiling: outcome.cacheCeiling,
    unsentRows: outcome.unsentRows,
    ranOutSeconds: outcome.ranOutSeconds,
  });
  return { outcome, result };
}
