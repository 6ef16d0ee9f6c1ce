import { quantile } from "../quantile.ts";
import type { TraceRow } from "./row.ts";

/** Times that a trace was rounded to. */
export interface TimeGrid {
  /** Usual distance of two times. */
  readonly stepMs: number;
  readonly times: number;
  /** Rows at one time: the mean and the most. */
  readonly rowsPerTime: number;
  readonly mostRowsPerTime: number;
  /** The time after a given one; Infinity after the last. */
  nextMs(timeMs: number): number;
}

/** Deviation from a whole number of steps that still counts as on the grid; the public traces vary by 3 ms in 3 s. */
const TOLERANCE = 0.01;
const SHARE_ON_GRID = 0.9;
const FEWEST_ROWS_PER_TIME = 2;

/** The grid of a trace's timestamps; undefined where most rows have a time of their own or times are irregular. */
export function detectGrid(rows: readonly TraceRow[]): TimeGrid | undefined {
  const counts = new Map<number, number>();
  let timed = 0;
  let mostRowsPerTime = 0;
  for (const { timestampMs } of rows) {
    if (timestampMs === undefined) continue;
    timed++;
    const count = (counts.get(timestampMs) ?? 0) + 1;
    counts.set(timestampMs, count);
    mostRowsPerTime = Math.max(mostRowsPerTime, count);
  }
  const times = Float64Array.from(counts.keys()).sort();
  if (times.length < 3 || timed < FEWEST_ROWS_PER_TIME * times.length) return undefined;
  const gaps = Array.from({ length: times.length - 1 }, (_, at) => times[at + 1] - times[at]);
  const stepMs = quantile(gaps, 0.5);
  const onGrid = gaps.filter((gap) => {
    const steps = gap / stepMs;
    return Math.round(steps) >= 1 && Math.abs(steps - Math.round(steps)) <= TOLERANCE;
  });
  if (onGrid.length < SHARE_ON_GRID * gaps.length) return undefined;
  const following = new Map(Array.from(times, (time, at) => [time, times[at + 1] ?? Infinity]));
  return {
    stepMs,
    times: times.length,
    rowsPerTime: timed / times.length,
    mostRowsPerTime,
    nextMs: (timeMs) => following.get(timeMs) ?? Infinity,
  };
}
