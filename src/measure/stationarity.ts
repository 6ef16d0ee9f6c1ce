import { NS_PER_MS, NS_PER_SECOND, type Nanoseconds } from "../core/clock.ts";
import type { RequestRecord } from "../core/request-record.ts";
import { e2eNs, ttftNs } from "./latencies.ts";
import { percentileOfSorted } from "./percentile.ts";
import { meanOf } from "./sample.ts";
import { kendallTau, leastSquaresSlope } from "./trend.ts";
import { accountInWindow, isInWindow, type MeasurementWindow } from "./window.ts";

/**
 * Whether a window shows a system that kept up, with the evidence; past saturation a mean depends on how long one
 * looks.
 */
export interface Stationarity {
  readonly saturated: boolean;
  /** Why, one plain sentence each; also why it could not be judged. */
  readonly reasons: readonly string[];
  /** Median TTFT of each tenth of the requests by arrival, over offered; null where more than half did not complete. */
  readonly ttftByDecileMs: readonly (number | null)[];
  /** Kendall's tau of those: 1 rises without exception, 0 has no trend; null if there were too few requests. */
  readonly ttftTrend: number | null;
  /** Mean of the last three tenths over that of the first three; null if one is not reached or there were too few. */
  readonly ttftGrowth: number | null;
  /** Requests that had arrived and not ended: mean over the window, trend by tenths of it, least-squares slope. */
  readonly backlogMean: number;
  readonly backlogTrend: number;
  readonly backlogSlopePerSecond: number;
  /** Requests that ended in the second half of the window per request that arrived in it; null if none did. */
  readonly lateServedRatio: number | null;
  /** Share of offered requests that were shed, rejected or timed out. */
  readonly refusedShare: number;
}

const PARTS = 10;
/** Five requests in each tenth; fewer say nothing about a trend. */
const FEWEST_REQUESTS = 5 * PARTS;
// For ten points tau >= 0.6 has a chance of 0.017 (two-sided) without any trend.
const STEADY_TREND = 0.6;
// An empty start alone makes TTFT rise a little; a queue that grows makes it rise without end.
const NOTABLE_TTFT_GROWTH = 1.5;
// From an empty start a queue that grows steadily gains twice its mean; a steady one that was filling gains little.
const NOTABLE_BACKLOG_GROWTH = 0.5;
const NOTABLE_REFUSED_SHARE = 0.05;
const NOTABLE_SERVED_RATIO = 0.95;
// Arrivals vary by about the square root of their number; three times that is no accident.
const NOTABLE_DEVIATIONS = 3;

/**
 * Judges saturation: the backlog rises throughout the window, and either TTFT does too or clearly fewer requests end
 * than arrive in the second half; or 5 % and more of the requests were turned away. The second half, because a run that
 * starts empty must fill up first; it alone finds a growth that began long before the window. A closed loop bounds its
 * own backlog and is therefore never found to grow. Where even the quickest answer takes longer than there was time, as in
 * a batch that is sent at once, everything grows and nothing follows from it.
 */
export function stationarity(records: readonly RequestRecord[], window: MeasurementWindow): Stationarity {
  const own = inArrivalOrder(records.filter((record) => isInWindow(record, window)));
  const medians = decileMedians(own, window);
  const { trend: ttftTrend, growth: ttftGrowth } = ttftRise(medians);
  const backlog = backlogByPart(records, window);
  const late = lateCounts(records, window);
  const partSeconds = (window.endNs - window.startNs) / NS_PER_SECOND / PARTS;
  const evidence = {
    ttftByDecileMs: medians.map((median) => (Number.isFinite(median) ? median / NS_PER_MS : null)),
    ttftTrend,
    ttftGrowth,
    backlogMean: meanOf(backlog),
    backlogTrend: kendallTau(backlog),
    backlogSlopePerSecond: leastSquaresSlope(backlog) / partSeconds,
    lateServedRatio: late.arrived === 0 ? null : late.ended / late.arrived,
    refusedShare: refusedShareOf(own, window),
  };
  if (own.length < FEWEST_REQUESTS) {
    const reason = `${own.length} requests are too few to judge; ${FEWEST_REQUESTS} are needed`;
    return { saturated: false, reasons: [reason], ...evidence };
  }
  const history = historyOf(records);
  const reasons = saturationReasons(evidence, late, history, window);
  if (reasons.length > 0 || history.quickestNs <= window.endNs - history.firstNs) {
    return { saturated: reasons.length > 0, reasons, ...evidence };
  }
  const [seconds, quickest] = [window.endNs - history.firstNs, history.quickestNs].map((ns) => ns / NS_PER_SECOND);
  const reason = `${seconds.toFixed(3)} s are too few to judge: the quickest answer took ${quickest.toFixed(3)} s`;
  return { saturated: false, reasons: [reason], ...evidence };
}

/** What speaks for saturation, in words; nothing if nothing does. */
function saturationReasons(
  evidence: Evidence,
  late: LateCounts,
  { firstNs, quickestNs }: History,
  { startNs, endNs }: MeasurementWindow,
): string[] {
  const seconds = (endNs - startNs) / NS_PER_SECOND;
  const { ttftTrend, ttftGrowth, backlogMean, backlogTrend, backlogSlopePerSecond: slope, refusedShare } = evidence;
  const ttftRises = ttftTrend !== null && ttftTrend >= STEADY_TREND && (ttftGrowth ?? Infinity) >= NOTABLE_TTFT_GROWTH;
  const isBacklogNotable = slope * seconds >= NOTABLE_BACKLOG_GROWTH * backlogMean;
  const isFallingBehind =
    quickestNs <= (startNs + endNs) / 2 - firstNs &&
    late.ended < NOTABLE_SERVED_RATIO * late.arrived &&
    late.arrived - late.ended >= NOTABLE_DEVIATIONS * Math.sqrt(late.arrived);
  const reasons: string[] = [];
  const couldEnd = quickestNs <= endNs - firstNs;
  if (couldEnd && backlogTrend >= STEADY_TREND && ((ttftRises && isBacklogNotable) || isFallingBehind)) {
    const symptom = ttftRises ? "TTFT rises by arrival" : `${late.ended} requests ended while ${late.arrived} arrived`;
    reasons.push(`${symptom}, and the backlog grows by ${slope.toFixed(2)} requests per second`);
  }
  if (refusedShare >= NOTABLE_REFUSED_SHARE) {
    reasons.push(`${(100 * refusedShare).toFixed(1)} % of the offered requests were turned away`);
  }
  return reasons;
}

type Evidence = Omit<Stationarity, "saturated" | "reasons">;

/** When the first request came, and how long the quickest answer took; 0 where none completed. */
interface History {
  readonly firstNs: Nanoseconds;
  readonly quickestNs: Nanoseconds;
}

function historyOf(records: readonly RequestRecord[]): History {
  let firstNs = Infinity;
  let quickestNs = Infinity;
  for (const record of records) {
    firstNs = Math.min(firstNs, record.intendedNs);
    if (record.account === "completed") quickestNs = Math.min(quickestNs, e2eNs(record) ?? Infinity);
  }
  return { firstNs, quickestNs: quickestNs === Infinity ? 0 : quickestNs };
}

interface LateCounts {
  readonly arrived: number;
  readonly ended: number;
}

function refusedShareOf(own: readonly RequestRecord[], window: MeasurementWindow): number {
  let refused = 0;
  for (const record of own) {
    const account = accountInWindow(record, window);
    if (account === "shed" || account === "rejected" || account === "timedOut") refused += 1;
  }
  return own.length === 0 ? 0 : refused / own.length;
}

/** Records mostly come in order already, which is cheaper to see than to sort. */
function inArrivalOrder(records: RequestRecord[]): RequestRecord[] {
  for (let i = 1; i < records.length; i++) {
    if (records[i].intendedNs < records[i - 1].intendedNs) return records.sort((a, b) => a.intendedNs - b.intendedNs);
  }
  return records;
}

/** Medians of the tenths by arrival, over offered; none if there are too few requests. */
function decileMedians(own: readonly RequestRecord[], window: MeasurementWindow): number[] {
  if (own.length < FEWEST_REQUESTS) return [];
  return Array.from({ length: PARTS }, (_, part) => {
    const from = Math.floor((own.length * part) / PARTS);
    const to = Math.floor((own.length * (part + 1)) / PARTS);
    const values = own.slice(from, to).map((record) => {
      return accountInWindow(record, window) === "completed" ? (ttftNs(record) ?? Infinity) : Infinity;
    });
    return percentileOfSorted(Float64Array.from(values).sort(), 0.5);
  });
}

function ttftRise(medians: readonly number[]): { trend: number | null; growth: number | null } {
  if (medians.length === 0) return { trend: null, growth: null };
  const growth = meanOf(medians.slice(-3)) / meanOf(medians.slice(0, 3));
  return { trend: kendallTau(medians), growth: Number.isFinite(growth) ? growth : null };
}

function lateCounts(records: readonly RequestRecord[], window: MeasurementWindow): LateCounts {
  const fromNs = (window.startNs + window.endNs) / 2;
  let arrived = 0;
  let ended = 0;
  for (const { intendedNs, endNs } of records) {
    if (intendedNs >= fromNs && intendedNs < window.endNs) arrived += 1;
    if (endNs !== undefined && endNs >= fromNs && endNs < window.endNs) ended += 1;
  }
  return { arrived, ended };
}

/** Mean number of requests that had arrived and not ended, for each tenth of the window's time. */
function backlogByPart(records: readonly RequestRecord[], window: MeasurementWindow): number[] {
  const partNs = (window.endNs - window.startNs) / PARTS;
  const requestNs = Array.from({ length: PARTS }, () => 0);
  for (const { intendedNs, endNs } of records) {
    const fromNs: Nanoseconds = Math.max(0, intendedNs - window.startNs);
    const toNs: Nanoseconds = Math.min(window.endNs, endNs ?? Infinity) - window.startNs;
    for (let part = Math.floor(fromNs / partNs); part < PARTS && part * partNs < toNs; part++) {
      requestNs[part] += Math.min(toNs, (part + 1) * partNs) - Math.max(fromNs, part * partNs);
    }
  }
  return requestNs.map((ns) => ns / partNs);
}
