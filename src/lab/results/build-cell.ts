import { NS_PER_MS, NS_PER_SECOND } from "../../core/clock.ts";
import { type RequestRecord, UNAVAILABLE, type Unavailable } from "../../core/request-record.ts";
import { checkAccounting } from "../../measure/accounting.ts";
import { cacheShares } from "../../measure/cache-shares.ts";
import { type LoadBalance, loadBalance } from "../../measure/in-flight.ts";
import { servedRates } from "../../measure/served-rates.ts";
import { type Slo, sloVerdict } from "../../measure/slo.ts";
import { measureSnapshots, type Snapshot, snapshotMean } from "../../measure/snapshots.ts";
import { stationarity } from "../../measure/stationarity.ts";
import type { PopulationSummaries } from "../../measure/summary.ts";
import { accountInWindow, isInWindow, type MeasurementWindow } from "../../measure/window.ts";
import { measureWindow, type WindowMeasures } from "../../measure/window-measures.ts";
import { refusalsOf } from "./refusals.ts";
import { roundNumbers } from "./round-numbers.ts";
import type { CellLatencies, CellLevel, CellResult, CellSnapshot, CellWorker, WorkerStats } from "./types.ts";

/** Everything a cell's entry is made of. */
export interface CellInput {
  readonly arm: string;
  readonly policy: string;
  readonly level: CellLevel;
  readonly run: number;
  readonly seed: number;
  /** All requests of the run, warm-up included: what came before the window may be served in it. */
  readonly records: readonly RequestRecord[];
  readonly window: MeasurementWindow;
  readonly slo: Slo;
  /** Parts of the window to be shown on their own; 0 for none. */
  readonly snapshots: number;
  readonly workers: readonly WorkerStats[];
  /** Share of prompt tokens that an endless cache would hold. */
  readonly cacheCeiling: number | Unavailable;
  /** Rows of a replayed trace that were never sent. */
  readonly unsentRows?: number | undefined;
  /** When a trace had nothing more to send, where that was long before the end of the window. */
  readonly ranOutSeconds?: number | undefined;
  /** Requests of the window as whoever sent them counted; a record that got lost shows as a difference. */
  readonly offered?: number | undefined;
}

/** Names a cell by arm, level and run. */
export function cellId(arm: string, level: CellLevel, run: number): string {
  const { concurrency, rateRps, speed, workers } = level;
  const parts = [];
  if (concurrency !== undefined) parts.push(`concurrency-${concurrency}`);
  if (rateRps !== undefined) parts.push(`rate-${rateRps}`);
  if (speed !== undefined) parts.push(`speed-${speed}`);
  return `${arm}/${[...parts, `workers-${workers}`].join("-")}/run-${run}`;
}

/** Turns the records of one run of one arm at one level into its entry; throws if a request is in no account. */
export function buildCell(input: CellInput): CellResult {
  const { arm, policy, level, run, seed, records, window, slo } = input;
  const id = cellId(arm, level, run);
  const measures = measureWindow(records, window, slo);
  checkOffered(measures, input.offered, id);
  const own = records.filter((record) => isInWindow(record, window));
  const latencies = latenciesOf(measures);
  const rates = servedRates(records, window);
  const names = input.workers.map(({ worker }) => worker);
  const balance = loadBalance(records, names, window);
  const judged = stationarity(records, window);
  const snapshots = input.snapshots > 0 ? measureSnapshots(records, window, input.snapshots, slo) : [];
  return roundNumbers({
    id,
    arm,
    policy,
    level,
    run,
    seed,
    window: {
      startSeconds: window.startNs / NS_PER_SECOND,
      endSeconds: window.endNs / NS_PER_SECOND,
      drainSeconds: window.drainNs / NS_PER_SECOND,
    },
    accounting: measures.accounting(),
    ...((input.unsentRows ?? 0) === 0 ? {} : { unsentRows: input.unsentRows }),
    ...(input.ranOutSeconds === undefined ? {} : { ranOutSeconds: input.ranOutSeconds }),
    ...latencies,
    wireTtftMs: measures.wireTtftNs.summaries(NS_PER_MS),
    scheduleLagMs: measures.scheduleLagNs.summaries(NS_PER_MS).completed,
    requestsWithoutGaps: measures.withoutTokenTimes,
    outputTokensPerSecond: rates.outputTokensPerSecond,
    requestsPerSecond: rates.requestsPerSecond,
    offeredPerSecond: rates.offeredPerSecond,
    requestsPerSecondOverSpan: rates.requestsPerSecondOverSpan,
    outputTokensPerSecondOverSpan: rates.outputTokensPerSecondOverSpan,
    promptTokensMean: meanOver(own, ({ promptTokens }) => promptTokens),
    outputTokensMean: meanOver(
      own.filter((record) => accountInWindow(record, window) === "completed"),
      ({ outputTokens }) => outputTokens,
    ),
    goodputShare: measures.goodputShare(),
    slo: { limits: slo, verdict: sloVerdict(offeredOf(latencies), slo) },
    cache: { ceiling: input.cacheCeiling, ...cacheShares(own, window) },
    workers: input.workers.map((stats, i) => workerOf(stats, balance?.workers[i])),
    inflightSpread: balance?.spread ?? UNAVAILABLE,
    inflightMeanSkew: balance?.meanSkew ?? UNAVAILABLE,
    saturated: judged.saturated,
    stationarity: judged,
    refusals: refusalsOf(own, window),
    snapshots: snapshots.map(snapshotOf),
    ...(snapshots.length > 0 ? { snapshotMeans: meansOf(snapshots) } : {}),
  });
}

/** The accounts must make up what was measured, and that what was sent. */
function checkOffered(measures: WindowMeasures, offered: number | undefined, id: string): void {
  const accounting = measures.accounting();
  checkAccounting({ ...accounting, offered: offered ?? accounting.offered }, id);
}

function latenciesOf(measures: WindowMeasures): CellLatencies {
  return {
    ttftMs: measures.ttftNs.summaries(NS_PER_MS),
    tpotMs: measures.tpotNs.summaries(NS_PER_MS),
    itlMs: measures.itlMs(),
    e2eMs: measures.e2eNs.summaries(NS_PER_MS),
  };
}

function offeredOf({ ttftMs, tpotMs, e2eMs }: CellLatencies): Parameters<typeof sloVerdict>[0] {
  return { ttftMs: ttftMs.offered, tpotMs: tpotMs.offered, e2eMs: e2eMs.offered };
}

function workerOf(stats: WorkerStats, inFlight: LoadBalance["workers"][number] | undefined): CellWorker {
  return {
    worker: stats.worker,
    requests: inFlight?.requests ?? UNAVAILABLE,
    share: inFlight?.share ?? UNAVAILABLE,
    busyShare: stats.busyShare,
    inFlightMean: inFlight?.inFlightMean ?? UNAVAILABLE,
    inFlightMax: inFlight?.inFlightMax ?? UNAVAILABLE,
    queueMax: stats.queueMax,
    kvOccupancy: stats.kvOccupancy,
    kvOccupancyMax: stats.kvOccupancyMax,
    evictions: stats.evictions,
    preemptions: stats.preemptions,
    draftAcceptance: stats.draftAcceptance,
    ...(stats.sampled === undefined ? {} : { sampled: stats.sampled }),
  };
}

function snapshotOf(snapshot: Snapshot): CellSnapshot {
  return {
    startSeconds: snapshot.window.startNs / NS_PER_SECOND,
    endSeconds: snapshot.window.endNs / NS_PER_SECOND,
    ttftMs: snapshot.ttftMs,
    tpotMs: snapshot.tpotMs,
    itlMs: snapshot.itlMs,
    e2eMs: snapshot.e2eMs,
    requestsPerSecond: snapshot.rates.requestsPerSecond,
    outputTokensPerSecond: snapshot.rates.outputTokensPerSecond,
    goodputShare: snapshot.goodputShare,
    cache: snapshot.cache,
  };
}

function meansOf(snapshots: readonly Snapshot[]): CellLatencies {
  const mean = (pick: (snapshot: Snapshot) => PopulationSummaries): PopulationSummaries => ({
    completed: snapshotMean(snapshots.map((snapshot) => pick(snapshot).completed)),
    offered: snapshotMean(snapshots.map((snapshot) => pick(snapshot).offered)),
  });
  return {
    ttftMs: mean(({ ttftMs }) => ttftMs),
    tpotMs: mean(({ tpotMs }) => tpotMs),
    itlMs: mean(({ itlMs }) => itlMs),
    e2eMs: mean(({ e2eMs }) => e2eMs),
  };
}

function meanOver(records: readonly RequestRecord[], valueOf: (record: RequestRecord) => number): number | null {
  let sum = 0;
  for (const record of records) sum += valueOf(record);
  return records.length === 0 ? null : sum / records.length;
}
