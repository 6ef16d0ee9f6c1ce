import { type FastestPrefill, waitingMs } from "./anatomy.ts";
import type { ArmAtLevel } from "./groups.ts";
import { percentileOfSorted } from "../../measure/percentile.ts";

/** How evenly work lay on the workers, and what came of it; all from the records. */
export interface Balance {
  /** Largest mean wait of a stretch of ten seconds on one worker. */
  readonly waitSpikeMs: number;
  /** Largest worker mean of waiting over the mean of all workers; 1 is even. */
  readonly waitSkew: number | undefined;
  /** Longest time from worker to first token. */
  readonly workerTtftMaxMs: number;
  /** Share of later turns that went where the turn before went; undefined without conversations. */
  readonly stickyShare: number | undefined;
  /** Requests that were placed on a worker whose batch was full, and the TTFT of those and of all others. */
  readonly crowded: Crowded | undefined;
}

export interface Crowded {
  readonly limit: number;
  readonly share: number;
  readonly ttftP95Ms: number | undefined;
  readonly othersTtftP95Ms: number | undefined;
}

const STRETCH_SECONDS = 10;

/** The balance of an arm at a level; undefined where records do not name workers. */
export function balanceOf(
  group: ArmAtLevel,
  fastest: FastestPrefill,
  batchLimit: number | undefined,
): Balance | undefined {
  const { evidence } = group;
  if (evidence === undefined || evidence.some(({ workers }) => workers.length === 0)) return undefined;
  const waits = waitingMs(group, fastest);
  let spike = 0;
  const skews: number[] = [];
  let longest = 0;
  let sticky = 0;
  let laterTurns = 0;
  for (const [cell, { columns, workers }] of evidence.entries()) {
    const stretches = new Means();
    const byWorker = new Means();
    for (let i = 0; i < columns.length; i++) {
      if (columns.moved[i] >= 0) laterTurns += 1;
      if (columns.moved[i] === 0) sticky += 1;
      const wait = waits[cell][i];
      const worker = columns.worker[i];
      if (Number.isNaN(wait) || worker < 0) continue;
      stretches.add(worker + workers.length * Math.floor(columns.arrivedSeconds[i] / STRETCH_SECONDS), wait);
      byWorker.add(worker, wait);
      longest = Math.max(longest, columns.workerMs[i]);
    }
    spike = Math.max(spike, ...stretches.all());
    const means = byWorker.all();
    const mean = means.reduce((sum, value) => sum + value, 0) / Math.max(1, workers.length);
    if (mean > 0) skews.push(Math.max(...means) / mean);
  }
  return {
    waitSpikeMs: spike,
    waitSkew: skews.length === 0 ? undefined : skews.reduce((sum, skew) => sum + skew, 0) / skews.length,
    workerTtftMaxMs: longest,
    stickyShare: laterTurns === 0 ? undefined : sticky / laterTurns,
    crowded: batchLimit === undefined ? undefined : crowdedOf(group, batchLimit),
  };
}

function crowdedOf({ evidence }: ArmAtLevel, limit: number): Crowded | undefined {
  const crowded: number[] = [];
  const others: number[] = [];
  for (const { columns } of evidence ?? []) {
    for (let i = 0; i < columns.length; i++) {
      if (columns.inFlight[i] < 0) continue;
      (columns.inFlight[i] > limit ? crowded : others).push(columns.ttftMs[i]);
    }
  }
  const total = crowded.length + others.length;
  if (total === 0) return undefined;
  const p95 = (values: readonly number[]): number | undefined => {
    const value = values.length < 20 ? undefined : percentileOfSorted(Float64Array.from(values).sort(), 0.95);
    return value === Infinity ? undefined : value;
  };
  return { limit, share: crowded.length / total, ttftP95Ms: p95(crowded), othersTtftP95Ms: p95(others) };
}

class Means {
  readonly #sums = new Map<number, { sum: number; count: number }>();

  add(key: number, value: number): void {
    const entry = this.#sums.get(key);
    if (entry === undefined) this.#sums.set(key, { sum: value, count: 1 });
    else {
      entry.sum += value;
      entry.count += 1;
    }
  }

  all(): number[] {
    return Array.from(this.#sums.values(), ({ sum, count }) => sum / count);
  }
}
