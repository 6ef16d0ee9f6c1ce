import {
  jackknifeError,
  meanWithout,
  type PartedValues,
  percentileWithout,
  type WithoutParts,
} from "../../measure/jackknife.ts";
import { meanOf } from "../../measure/sample.ts";
import { studentQuantile, studentTail } from "../../measure/student-t.ts";
import { runsOf } from "./cell.ts";
import { PARTS_PER_RUN } from "./evidence.ts";
import type { ArmAtLevel } from "./groups.ts";
import type { JudgedMetric } from "./judged-metrics.ts";
import { type LatencyPoints, middleOf, type Reading } from "./reading.ts";

/**
 * What the noise of a difference was taken from: `parts`, the same requests in both arms, without each tenth of each run
 * in turn; `runs`, how far runs lie apart; `ranges`, one run each, where only ranges that do not even touch count;
 * `counts`, requests counted; `none`, nothing to take it from.
 */
export type NoiseSource = "parts" | "runs" | "ranges" | "counts" | "none";

/** How an arm stands to the baseline on one metric. */
export interface Difference {
  readonly metric: JudgedMetric;
  readonly baseline: Reading;
  readonly arm: Reading;
  /** Relative to the baseline; of a share, the difference itself. Infinite where one was not reached, undefined where neither was. */
  readonly change: number | undefined;
  /** 95 % interval of the change. */
  readonly interval: { readonly low: number; readonly high: number } | undefined;
  /** How likely so much, in either direction, is without any difference. */
  readonly chance: number | undefined;
  readonly noise: NoiseSource;
}

const INTERVAL_TAIL = 0.025;

/** Compares two arms at a level on one metric. */
export function differenceOf(metric: JudgedMetric, baseline: ArmAtLevel, arm: ArmAtLevel): Difference {
  const readings = { metric, baseline: metric.of(baseline), arm: metric.of(arm) };
  const change = changeOf(metric, middleOr(readings.baseline), middleOr(readings.arm));
  // What only one arm reached, or delivered, differs by what the other did not complete, and that is counted.
  const isOneUnreached = isNothing(metric, readings.baseline) !== isNothing(metric, readings.arm);
  const noise = isOneUnreached ? byLosses(baseline, arm) : noiseOf(metric, baseline, arm);
  if (readings.baseline.state === "not-reached" && readings.arm.state === "not-reached") {
    // Both lie beyond all that completed, nobody knows how far; where it could be tested, it counts and shows nothing.
    const chance = noise === undefined ? undefined : 1;
    return { ...readings, change: undefined, interval: undefined, chance, noise: noise?.from ?? "none" };
  }
  if (change === undefined || noise === undefined) {
    return { ...readings, change, interval: undefined, chance: undefined, noise: "none" };
  }
  const { effect, error, degrees, from } = noise;
  if (from === "ranges") return { ...readings, change, interval: undefined, chance: effect === 0 ? 1 : 0, noise: from };
  if (effect === 0 || error === 0) {
    return { ...readings, change, interval: { low: change, high: change }, chance: effect === 0 ? 1 : 0, noise: from };
  }
  if (!Number.isFinite(effect) || !Number.isFinite(error)) {
    return { ...readings, change, interval: undefined, chance: undefined, noise: "none" };
  }
  const chance = 2 * studentTail(Math.abs(effect) / error, degrees);
  if (isOneUnreached) return { ...readings, change, interval: undefined, chance, noise: from };
  const half = error * studentQuantile(INTERVAL_TAIL, degrees);
  const back = metric.kind === "share" ? (value: number) => value : (value: number) => Math.exp(value) - 1;
  return {
    ...readings,
    change,
    interval: { low: back(effect - half), high: back(effect + half) },
    chance,
    noise: from,
  };
}

interface Noise {
  /** Logarithm of the ratio; of a share, the difference. */
  readonly effect: number;
  readonly error: number;
  readonly degrees: number;
  readonly from: NoiseSource;
}

function noiseOf(metric: JudgedMetric, baseline: ArmAtLevel, arm: ArmAtLevel): Noise | undefined {
  const counted = metric.name === "completedShare" ? byCounts(baseline, arm) : undefined;
  // Tenths of a single run would leave a fifth of all requests lost unshown, and what is left would then be judged.
  const isSingle = baseline.cells.length < 2 || arm.cells.length < 2;
  return (
    (isSingle ? counted : undefined) ??
    byParts(metric, baseline, arm) ??
    counted ??
    byRuns(metric, baseline, arm) ??
    byRanges(metric, baseline, arm)
  );
}

function byParts(metric: JudgedMetric, baseline: ArmAtLevel, arm: ArmAtLevel): Noise | undefined {
  const [x, y] = [baseline.cells, arm.cells];
  const isEachPaired = x.length === y.length && x.every(({ run }, at) => run === y[at].run);
  // Where one arm has fewer runs because some repeat others, a tenth is left out of all runs at once, which pairs it.
  if (!isEachPaired && !haveSameRuns(baseline, arm)) return undefined;
  const a = withoutParts(metric, arm, isEachPaired);
  const b = withoutParts(metric, baseline, isEachPaired);
  if (a === undefined || b === undefined) return undefined;
  const effects = a.without.map((value, part) => effectOf(metric, b.without[part], value));
  // Parts of a run depend on each other near saturation, so degrees of freedom are counted by runs.
  return {
    effect: effectOf(metric, b.all, a.all),
    error: jackknifeError(effects, PARTS_PER_RUN),
    degrees: Math.min(x.length, y.length),
    from: "parts",
  };
}

/** Whether each run of one arm has one of the other, runs that repeat others included. */
function haveSameRuns(baseline: ArmAtLevel, arm: ArmAtLevel): boolean {
  const [x, y] = [baseline, arm].map(({ cells }) => new Set(cells.flatMap(runsOf)));
  return x.size === y.size && [...x].every((run) => y.has(run));
}

const WITHOUT = new WeakMap<ArmAtLevel, Map<string, WithoutParts>>();

/**
 * A metric of an arm without each tenth of each run, or without each tenth of all of them; an arm is compared with several
 * others, so it is kept.
 */
function withoutParts(metric: JudgedMetric, group: ArmAtLevel, isByRun: boolean): WithoutParts | undefined {
  const { name, requests } = metric;
  const key = `${name} ${isByRun}`;
  const known = WITHOUT.get(group)?.get(key);
  if (known !== undefined) return known;
  const parted = partedValues(metric, group, isByRun);
  if (parted === undefined) return undefined;
  const share = requests?.share;
  const computed = share === undefined ? meanWithout(parted) : percentileWithout(parted, share);
  const byName = WITHOUT.get(group) ?? new Map<string, WithoutParts>();
  WITHOUT.set(group, byName.set(key, computed));
  return computed;
}

/** The values that a metric is a mean or a percentile of, with their parts; undefined where records are needed and missing. */
function partedValues(
  { requests, parts: rateOf }: JudgedMetric,
  { evidence }: ArmAtLevel,
  isByRun: boolean,
): PartedValues | undefined {
  if (evidence === undefined || (requests === undefined && rateOf === undefined)) return undefined;
  const values: number[] = [];
  const parts: number[] = [];
  for (const [run, one] of evidence.entries()) {
    const column = rateOf?.(one) ?? requests?.column(one.columns) ?? [];
    for (let i = 0; i < column.length; i++) {
      if (Number.isNaN(column[i])) continue;
      values.push(column[i]);
      parts.push((isByRun ? run * PARTS_PER_RUN : 0) + (rateOf === undefined ? one.columns.part[i] : i));
    }
  }
  return {
    values: Float64Array.from(values),
    parts: Uint16Array.from(parts),
    partCount: (isByRun ? evidence.length : 1) * PARTS_PER_RUN,
  };
}

/** Requests that completed or did not are counted exactly, whatever else is unknown. */
function byCounts(baseline: ArmAtLevel, arm: ArmAtLevel): Noise | undefined {
  const { offered: n, completed: x } = baseline.accounting;
  const { offered: m, completed: y } = arm.accounting;
  if (n === 0 || m === 0) return undefined;
  const share = (x + y) / (n + m);
  return {
    effect: y / m - x / n,
    error: Math.sqrt(share * (1 - share) * (1 / n + 1 / m)),
    degrees: n + m - 2,
    from: "counts",
  };
}

/** The same for what follows from requests that did not complete; where as many did, something else is behind it. */
function byLosses(baseline: ArmAtLevel, arm: ArmAtLevel): Noise | undefined {
  const counted = byCounts(baseline, arm);
  return counted?.effect === 0 ? undefined : counted;
}

/** Welch's test on the runs' own values, since nothing pairs the runs of two deployments. */
function byRuns(metric: JudgedMetric, baseline: ArmAtLevel, arm: ArmAtLevel): Noise | undefined {
  const values = (group: ArmAtLevel): number[] | undefined => {
    const all = group.cells.map((cell) => metric.ofRun(cell));
    if (all.some((value) => value === undefined)) return undefined;
    return all.map((value) => (metric.kind === "share" ? (value ?? 0) : Math.log(value ?? 0)));
  };
  const [x, y] = [values(baseline), values(arm)];
  if (x === undefined || y === undefined || x.length < 2 || y.length < 2) return undefined;
  const [u, v] = [variance(x) / x.length, variance(y) / y.length];
  const degrees = (u + v) ** 2 / (u ** 2 / (x.length - 1) + v ** 2 / (y.length - 1));
  return {
    effect: meanOf(y) - meanOf(x),
    error: Math.sqrt(u + v),
    degrees: Number.isFinite(degrees) ? Math.max(1, degrees) : 1,
    from: "runs",
  };
}

/** One run each and no requests: a percentile is taken to lie anywhere between its known neighbours. */
function byRanges(metric: JudgedMetric, baseline: ArmAtLevel, arm: ArmAtLevel): Noise | undefined {
  const share = metric.requests?.share;
  if (metric.kind !== "latency" || share === undefined) return undefined;
  const latency = metric.name.startsWith("ttft") ? "ttftMs" : metric.name.startsWith("tpot") ? "tpotMs" : "e2eMs";
  const range = ({ cells }: ArmAtLevel): { low: number; high: number } | undefined =>
    cells.length === 1 ? neighbours(cells[0].latencies[latency].points, share) : undefined;
  const [x, y] = [range(baseline), range(arm)];
  if (x === undefined || y === undefined) return undefined;
  const effect = y.low > x.high ? 1 : y.high < x.low ? -1 : 0;
  return { effect, error: 0, degrees: 1, from: "ranges" };
}

function neighbours({ points }: LatencyPoints, share: number): { low: number; high: number } | undefined {
  const below = points.findLast(([at]) => at < share);
  const above = points.find(([at]) => at > share);
  return below === undefined || above === undefined ? undefined : { low: below[1], high: above[1] };
}

function effectOf({ kind }: JudgedMetric, baseline: number, arm: number): number {
  if (kind === "share") return arm - baseline;
  if (arm === baseline) return 0;
  return Math.log(arm / baseline);
}

function changeOf({ kind }: JudgedMetric, baseline: number | undefined, arm: number | undefined): number | undefined {
  if (baseline === undefined || arm === undefined) return undefined;
  if (arm === baseline) return 0;
  if (kind === "share") return arm - baseline;
  if (baseline === Infinity) return -1;
  return (arm - baseline) / baseline;
}

/** A latency that was not reached, or a rate of nothing at all. */
function isNothing({ kind }: JudgedMetric, reading: Reading): boolean {
  return reading.state === "not-reached" || (kind === "rate" && middleOf(reading) === 0);
}

function middleOr(reading: Reading): number | undefined {
  return reading.state === "not-reached" ? Infinity : middleOf(reading);
}

function variance(values: readonly number[]): number {
  const mean = meanOf(values);
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
}
