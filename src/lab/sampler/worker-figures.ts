import { UNAVAILABLE, type Unavailable } from "../../core/request-record.ts";
import type { MeasurementWindow } from "../../measure/window.ts";
import type { WorkerStats } from "../results/types.ts";
import { type CounterName, type GpuReading, mean, type PageReading } from "./page-reading.ts";
import type { PageHistory, TimedReading } from "./sampler.ts";

/** What the samples of a window say of each worker; `names` are all workers, also those that no page is known of. */
export function workerFigures(
  names: readonly string[],
  histories: readonly PageHistory[],
  window: MeasurementWindow,
): WorkerStats[] {
  return names.map((worker) => {
    const own = histories.find(({ page }) => page.worker === worker)?.readings ?? [];
    const cards = histories.flatMap(({ page, readings }) =>
      page.worker === undefined ? readings.flatMap((timed) => cardsOf(worker, timed)) : [],
    );
    return figuresOf(worker, own, cards, window);
  });
}

/** How often counters went back or the process began anew; unavailable where nothing that would show it is known. */
function restartsOf(readings: readonly TimedReading[]): number | Unavailable {
  let restarts = 0;
  let isKnown = false;
  let before: PageReading | undefined;
  for (const { reading } of readings) {
    if (reading === undefined) continue;
    const { counters, startedSeconds } = reading;
    const names = Object.keys(counters) as CounterName[];
    isKnown ||= startedSeconds !== undefined || names.some((name) => counters[name] !== undefined);
    const fell = names.some((name) => (counters[name] ?? 0) < (before?.counters[name] ?? 0));
    const beganAnew =
      startedSeconds !== undefined && before?.startedSeconds !== undefined && startedSeconds > before.startedSeconds;
    if (fell || beganAnew) restarts += 1;
    before = reading;
  }
  return isKnown ? restarts : UNAVAILABLE;
}

/** By how much a counter rose in the window; undefined where it is not known, or fell because the engine began anew. */
export function riseOf(
  counter: CounterName,
  readings: readonly TimedReading[],
  { startNs, endNs }: MeasurementWindow,
): number | undefined {
  const counts = readings.flatMap(({ atNs, reading }) => {
    const value = reading?.counters[counter];
    return value === undefined ? [] : [{ atNs, value }];
  });
  // A look is taken at either edge; those nearest to them are meant.
  const nearest = (edgeNs: number): { atNs: number; value: number } | undefined =>
    counts.toSorted((a, b) => Math.abs(a.atNs - edgeNs) - Math.abs(b.atNs - edgeNs))[0];
  const first = nearest(startNs);
  const last = nearest(endNs);
  if (first === undefined || last === undefined || last.atNs <= first.atNs) return undefined;
  return last.value >= first.value ? last.value - first.value : undefined;
}

function figuresOf(
  worker: string,
  all: readonly TimedReading[],
  cards: readonly TimedCards[],
  window: MeasurementWindow,
): WorkerStats {
  const within = all.flatMap(({ atNs, reading }) => (reading !== undefined && isWithin(atNs, window) ? reading : []));
  const own = within.map(({ gpus }) => gpus).filter((gpus) => gpus.length > 0);
  const gpus = own.length > 0 ? own : cards.flatMap(({ atNs, gpus: of }) => (isWithin(atNs, window) ? [of] : []));
  const busy = gpus.flatMap((of) => mean(known(of, ({ busyShare }) => busyShare)) ?? []);
  const memory = (pick: (gpu: GpuReading) => number | undefined): number | undefined =>
    mean(gpus.flatMap((of) => sumOf(known(of, pick)) ?? []));
  const used = memory(({ memoryUsedBytes }) => memoryUsedBytes);
  const free = memory(({ memoryFreeBytes }) => memoryFreeBytes);
  const kvUsage = known(within, (reading) => reading.kvUsage);
  const waiting = known(within, (reading) => reading.waiting);
  const drafts = riseOf("draftTokens", all, window);
  const accepted = riseOf("acceptedTokens", all, window);
  return {
    worker,
    busyShare: asShare(mean(busy)),
    queueMax: orUnavailable(largest(waiting)),
    kvOccupancy: asShare(mean(kvUsage)),
    kvOccupancyMax: asShare(largest(kvUsage)),
    evictions: orUnavailable(riseOf("evictedBlocks", all, window)),
    preemptions: orUnavailable(riseOf("preemptions", all, window)),
    draftAcceptance: drafts === undefined || drafts === 0 ? UNAVAILABLE : asShare((accepted ?? 0) / drafts),
    sampled: {
      samples: Math.max(within.length, gpus.length),
      busyShareMin: asShare(smallest(busy)),
      busyShareMax: asShare(largest(busy)),
      memoryUsedBytes: rounded(used),
      memoryTotalBytes: rounded(used === undefined || free === undefined ? undefined : used + free),
      powerWatts: orUnavailable(memory(({ powerWatts }) => powerWatts)),
      restarts: restartsOf(all),
    },
  };
}

interface TimedCards {
  readonly atNs: number;
  readonly gpus: readonly GpuReading[];
}

/** The cards on an exporter's page that belong to a worker. */
function cardsOf(worker: string, { atNs, reading }: TimedReading): TimedCards | [] {
  const gpus = reading?.gpus.filter(({ owners }) => owners.includes(worker)) ?? [];
  return gpus.length === 0 ? [] : { atNs, gpus };
}

function isWithin(atNs: number, { startNs, endNs }: MeasurementWindow): boolean {
  return atNs >= startNs && atNs <= endNs;
}

function known<Of>(all: readonly Of[], pick: (one: Of) => number | undefined): number[] {
  return all.flatMap((one) => pick(one) ?? []);
}

function sumOf(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((before, value) => before + value, 0);
}

function largest(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((most, value) => Math.max(most, value));
}

function smallest(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((least, value) => Math.min(least, value));
}

function orUnavailable(value: number | undefined): number | Unavailable {
  return value ?? UNAVAILABLE;
}

function rounded(value: number | undefined): number | Unavailable {
  return value === undefined ? UNAVAILABLE : Math.round(value);
}

function asShare(value: number | undefined): number | Unavailable {
  return value === undefined ? UNAVAILABLE : Math.min(1, Math.max(0, value));
}
