import { NS_PER_SECOND, type Nanoseconds } from "../../../core/clock.ts";
import { WarmpathError } from "../../../core/errors.ts";
import { UNAVAILABLE } from "../../../core/request-record.ts";
import type { Cell } from "../../../lab/experiment/cells.ts";
import { type CellOutcome, cellWindow, endedWindow, ranOutSeconds } from "../../../lab/experiment/target.ts";
import type { Experiment } from "../../../lab/experiment/types.ts";
import { cellWorkload, type PreparedTrace } from "../../../lab/experiment/workload.ts";
import type { WorkerStats } from "../../../lab/results/types.ts";
import type { MeasurementWindow } from "../../../measure/window.ts";
import type { WorkerSummary } from "../../../sim/fleet/types.ts";
import { simulateFleet } from "../../../sim/fleet/virtual-fleet.ts";
import { CeilingSource } from "./ceiling-source.ts";
import { type FleetVariation, simulatedFleet } from "./simulated-fleet.ts";

/** Everything that is the same for all cells of an experiment. */
export interface SimulationSetting {
  readonly experiment: Experiment;
  readonly trace: PreparedTrace | undefined;
  /** What a sequence holds at its end, by the workload. */
  readonly tokensPerSequence: number;
}

/** Runs a cell on the twin. Equal cells give equal outcomes. */
export function simulateCell(
  { experiment, trace, tokensPerSequence }: SimulationSetting,
  cell: Cell,
  variation?: FleetVariation,
): CellOutcome {
  const { source, lastDueNs } = cellWorkload(experiment, cell, trace);
  const planned = cellWindow(experiment, lastDueNs);
  const watched = new CeilingSource(source, cell.fleet.blockTokens, planned);
  const { timeoutSeconds } = experiment;
  const result = simulateFleet({
    ...simulatedFleet(cell, experiment.signals, tokensPerSequence, variation),
    source: watched,
    window: planned,
    ...offering(experiment, planned),
    ...(timeoutSeconds === undefined ? {} : { timeoutNs: Math.round(timeoutSeconds * NS_PER_SECOND) }),
  });
  const lastSentNs = result.records.reduce((latest, { intendedNs }) => Math.max(latest, intendedNs), 0);
  const window = endedWindow(planned, lastSentNs);
  return {
    records: result.records,
    workers: result.workers.map(workerStats),
    cacheCeiling: watched.ceiling ?? UNAVAILABLE,
    window,
    ranOutSeconds: ranOutSeconds(trace?.rows.length, result.records, window),
    unsentRows: experiment.load.speed === undefined ? undefined : (trace?.rows.length ?? 0) - result.records.length,
  };
}

/**
 * A closed loop goes on while its last requests are waited for: if it fell silent they would be served by an emptying fleet
 * and look better than those before them. A schedule ends when it ends: when nothing has been due for as long as answers
 * are waited for, if turns wait for them.
 */
function offering(
  { load }: Experiment,
  { endNs, drainNs }: MeasurementWindow,
): { offerUntilNs: Nanoseconds; drainNs: Nanoseconds } {
  // Without an end, the fleet counts the drain from the last request that was sent.
  return load.speed === undefined ? { offerUntilNs: endNs + drainNs, drainNs: 0 } : { offerUntilNs: endNs, drainNs };
}

function workerStats({ worker, inWindow }: WorkerSummary): WorkerStats {
  if (inWindow === undefined) throw new WarmpathError("WP_INVALID_STATE", `nobody looked at ${worker} in the window`);
  const { proposedDrafts, acceptedDrafts } = inWindow;
  return {
    worker,
    busyShare: Math.min(1, inWindow.busyShare),
    queueMax: inWindow.queueMax,
    kvOccupancy: inWindow.kvOccupancyMean,
    kvOccupancyMax: inWindow.kvOccupancyMax,
    evictions: inWindow.evictions,
    preemptions: inWindow.preemptions,
    // Without drafts, of a worker that had nothing to do too, there is no share of them.
    draftAcceptance: proposedDrafts > 0 ? acceptedDrafts / proposedDrafts : UNAVAILABLE,
  };
}
