import { NS_PER_SECOND } from "../../core/clock.ts";
import { hashString, mixPair } from "../../core/rng.ts";
import type { MeasurementWindow } from "../../measure/window.ts";
import { sliceRows } from "../../workload/trace/transform.ts";
import { fleetMemory } from "../experiment/memory.ts";
import { STANDARD_SIGNALS } from "../experiment/schema.ts";
import type { FleetConfig, LoadConfig, SignalConfig } from "../experiment/types.ts";
import { meanSequenceTokens, meanSessionRequests, type PreparedTrace } from "../experiment/workload.ts";
import type { CellLevel } from "../results/types.ts";
import type { Perturbation, Suite, SuiteCell, SuiteSize, SuiteWorkload } from "./types.ts";

/** A workload with its fleet, its trace where it has one, and what follows from them. */
export interface Bench {
  readonly workload: SuiteWorkload;
  readonly fleet: FleetConfig;
  readonly trace: PreparedTrace | undefined;
  readonly tokensPerSequence: number;
  readonly requestsPerSession: number;
}

/** Brings together what the cells of a workload share. */
export function benchOf(suite: Suite, workload: SuiteWorkload, trace: PreparedTrace | undefined): Bench {
  return {
    workload,
    fleet: suite.fleets[workload.fleet],
    trace,
    tokensPerSequence: meanSequenceTokens(workload.workload, trace, suite.seed),
    requestsPerSession: meanSessionRequests(workload.workload, trace, suite.seed),
  };
}

/** One run of a cell, ready for any arm. */
export interface PlannedRun {
  readonly seed: number;
  readonly level: CellLevel;
  readonly load: LoadConfig;
  readonly trace: PreparedTrace | undefined;
  readonly window: MeasurementWindow;
}

/** Warm-up per request of the window: enough to fill caches and batches. */
const WARM_UP_SHARE = 0.5;
/** Shares of a trace's time at which its window begins and ends; the rest keeps the fleet busy while answers are awaited. */
const TRACE_WINDOW = [0.3, 0.85] as const;
/** Runs have rows of their own, but not fewer than this: those of a short trace overlap. */
const FEWEST_TRACE_ROWS = 600;
const DRAIN_SECONDS = 120;

/** Run number `run` (from 0) of a cell, at its share of the requests per second that saturate round-robin. */
export function planRun(
  bench: Bench,
  cell: SuiteCell,
  size: SuiteSize,
  saturationRps: number,
  suiteSeed: number,
  run: number,
): PlannedRun {
  const requestsRps = cell.load * saturationRps;
  // The same requests whatever is perturbed.
  const seed = mixPair(mixPair(suiteSeed, hashString(`${cell.workload} ${cell.load} ${cell.workers}`)), run);
  if (bench.trace !== undefined) return planTraceRun(bench.trace, cell, size, requestsRps, seed, run);
  const { sessionSeconds, arrivals, burstSize } = bench.workload;
  const warmUpSeconds = Math.max((WARM_UP_SHARE * size.requests) / requestsRps, sessionSeconds);
  const windowSeconds = Math.max(size.requests / requestsRps, sessionSeconds);
  const rateRps = requestsRps / bench.requestsPerSession;
  return {
    seed,
    level: { rateRps, workers: cell.workers },
    load: { rateRps: [rateRps], arrivals, burstSize },
    trace: undefined,
    window: windowOf(warmUpSeconds, warmUpSeconds + windowSeconds),
  };
}

/** Every run has a part of the trace of its own, as far as there are rows; where they overlap, runs are not independent. */
function planTraceRun(
  { rows, provenance }: PreparedTrace,
  { workers }: SuiteCell,
  { requests, runs }: SuiteSize,
  requestsRps: number,
  seed: number,
  run: number,
): PlannedRun {
  const wanted = Math.round(requests / (TRACE_WINDOW[1] - TRACE_WINDOW[0]));
  const count = Math.min(rows.length, wanted, Math.max(FEWEST_TRACE_ROWS, Math.floor(rows.length / runs)));
  const fromRow = Math.floor(((rows.length - count) * run) / Math.max(1, runs - 1));
  const own = sliceRows(rows, { fromRow, toRow: fromRow + count });
  const seconds = own.reduce((latest, { timestampMs = 0 }) => Math.max(latest, timestampMs), 0) / 1000;
  const speed = (requestsRps * seconds) / own.length;
  const lasts = seconds / speed;
  return {
    seed,
    level: { speed, workers },
    load: { speed: [speed] },
    trace: { rows: own, provenance },
    window: windowOf(TRACE_WINDOW[0] * lasts, TRACE_WINDOW[1] * lasts),
  };
}

function windowOf(startSeconds: number, endSeconds: number): MeasurementWindow {
  const ns = (seconds: number): number => Math.round(seconds * NS_PER_SECOND);
  return { startNs: ns(startSeconds), endNs: ns(endSeconds), drainNs: ns(endSeconds - startSeconds + DRAIN_SECONDS) };
}

/** The fleet of a cell: the pool may be other than planned, and is never larger than the card leaves room for. */
export function perturbedFleet({ fleet, tokensPerSequence }: Bench, { kvPool = 1 }: Perturbation): FleetConfig {
  if (kvPool === 1) return fleet;
  const { poolTokens, headroomBytes, bytesPerToken } = fleetMemory(fleet, tokensPerSequence);
  const most = poolTokens + Math.floor(headroomBytes / bytesPerToken);
  return { ...fleet, kvPoolTokens: Math.min(Math.round(kvPool * poolTokens), most) };
}

/** How signals travel in a cell. */
export function perturbedSignals({ kvEventDelayMs, kvEventLossShare }: Perturbation): SignalConfig {
  const { kvEvents } = STANDARD_SIGNALS;
  return {
    ...STANDARD_SIGNALS,
    kvEvents: {
      ...kvEvents,
      delayMs: kvEventDelayMs ?? kvEvents.delayMs,
      lossShare: kvEventLossShare ?? kvEvents.lossShare,
    },
  };
}
