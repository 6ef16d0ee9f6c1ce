import { NS_PER_SECOND, type Nanoseconds } from "../../core/clock.ts";
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
}

/** Runs one cell somewhere: on the twin, a local fleet, or an endpoint. */
export type CellRunner = (cell: Cell) => CellOutcome;

/**
 * What is measured of a cell; `lastDueNs` is when a schedule ends by itself, with its last request in the window. Edges are
 * whole microseconds, as results are written: whoever reads them finds the same requests between them.
 */
export function cellWindow(experiment: Experiment, lastDueNs: Nanoseconds | undefined): MeasurementWindow {
  const { warmUpSeconds, windowSeconds, drainSeconds, cacheState, carryOverSeconds } = experiment;
  const before = warmUpSeconds + (cacheState === "carried-over" ? carryOverSeconds : 0);
  const startNs = microsecondFrom(before * NS_PER_SECOND);
  const endNs = windowSeconds === undefined ? (lastDueNs ?? startNs) + 1 : startNs + windowSeconds * NS_PER_SECOND;
  return { startNs, endNs: microsecondFrom(endNs), drainNs: Math.round(drainSeconds * NS_PER_SECOND) };
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
  });
  return { outcome, result };
}
