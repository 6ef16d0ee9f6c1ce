import { type Account, type Accounting, ACCOUNTS } from "../../core/accounts.ts";
import type { Nanoseconds } from "../../core/clock.ts";
import type { Flight } from "./flight.ts";
import type { InFlightTracker } from "./in-flight-tracker.ts";
import type { SignalChannel } from "./signal-channel.ts";
import type { SimWorker, WorkerChannels } from "./sim-worker.ts";
import type { FleetResult, WorkerSummary } from "./types.ts";
import type { WindowMeter } from "./window-meter.ts";

/** What a run leaves behind. */
export interface FinishedFleet {
  readonly flights: readonly Flight[];
  readonly workers: readonly SimWorker[];
  readonly tracker: InFlightTracker;
  readonly meter: WindowMeter;
  readonly toClientNs: Nanoseconds;
  readonly endNs: Nanoseconds;
  readonly events: number;
  readonly kvEvents: number;
}

/** Turns what a run has left behind into its result. */
export function fleetResult(fleet: FinishedFleet): FleetResult {
  const { flights, tracker, endNs } = fleet;
  const inWindow = fleet.meter.figures(endNs);
  settle(fleet);
  const placed = tracker.placed.reduce((sum, count) => sum + count, 0);
  const workers = fleet.workers.map((worker, at) => ({
    ...summary(worker, tracker, placed, endNs),
    inWindow: inWindow?.[at],
  }));
  const lost = (channel: (channels: WorkerChannels) => SignalChannel): number =>
    fleet.workers.reduce((sum, { channels }) => sum + channel(channels).lost, 0);
  return {
    records: flights.map((flight) => flight.record(fleet.toClientNs)),
    accounting: accountingOf(flights),
    workers,
    inFlightSpread: tracker.spread(endNs),
    endNs,
    counts: {
      events: fleet.events,
      steps: workers.reduce((sum, { engine }) => sum + engine.steps, 0),
      engineRuns: workers.reduce((sum, { engine }) => sum + engine.runs, 0),
      kvEvents: fleet.kvEvents,
      kvEventsLost: lost(({ kvEvents }) => kvEvents),
      signalsLost: lost(({ firstToken }) => firstToken) + lost(({ growth }) => growth) + lost(({ ended }) => ended),
    },
  };
}

/** What is under way when the run ends is unfinished, as far as it is. */
function settle({ flights, workers, endNs }: FinishedFleet): void {
  for (const worker of workers) {
    worker.engine.settleAt(endNs);
    worker.send();
  }
  for (const flight of flights) {
    if (flight.isSettled) continue;
    flight.account = "unfinished";
    if (flight.isInEngine) flight.noteProgress(workers[flight.worker].engine.progressOf(flight.index, endNs));
  }
}

function summary(worker: SimWorker, tracker: InFlightTracker, placed: number, endNs: Nanoseconds): WorkerSummary {
  const { stats } = worker.engine;
  const requests = tracker.placed[worker.index];
  return {
    worker: worker.name,
    requests,
    share: placed === 0 ? 0 : requests / placed,
    busyShare: endNs === 0 ? 0 : stats.busyNs / endNs,
    inFlightMean: tracker.mean(worker.index, endNs),
    inFlightMax: tracker.maxima[worker.index],
    queueMax: stats.maxQueued,
    kvOccupancyMean: stats.meanHeldBlocks / stats.poolBlocks,
    kvOccupancyMax: stats.maxHeldBlocks / stats.poolBlocks,
    evictions: stats.evictedBlocks,
    preemptions: stats.preemptions,
    engine: stats,
  };
}

function accountingOf(flights: readonly Flight[]): Accounting {
  const counts = Object.fromEntries(ACCOUNTS.map((account) => [account, 0])) as Record<Account, number>;
  for (const { account } of flights) counts[account] += 1;
  return { offered: flights.length, ...counts };
}
