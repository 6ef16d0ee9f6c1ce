import type { Difference } from "./differences.ts";
import type { Obstacle } from "./comparability.ts";
import { valueOf } from "./reading.ts";
import type { ArmAtLevel } from "./groups.ts";

/**
 * What a comparison comes to. `traded`: the arm completes fewer requests and is quicker with the rest, or the other way
 * round; neither is better than the other. `mixed`: better in some respects, worse in others.
 */
export type VerdictKind = "better" | "worse" | "mixed" | "no-difference-shown" | "traded" | "not-comparable";

/** How one metric came out. */
export type Outcome = "better" | "worse" | "no-difference-shown";

/** A difference, and whether it is one. */
export interface JudgedDifference extends Difference {
  readonly outcome: Outcome;
}

export interface Verdict {
  readonly kind: VerdictKind;
  /** What it rests on, one plain sentence each; regressions stand before gains. */
  readonly reasons: readonly string[];
  /** Of arms that cannot be compared: whether that is because both are past saturation, and nothing else. */
  readonly isPastSaturation?: boolean;
}

/** Differences below these are not worth a word, however sure they are: 2 %, and half a percentage point of a share. */
const NOTABLE_CHANGE = 0.02;
const NOTABLE_SHARE = 0.005;
/** From single runs, only what the A/B guide calls an improvement at all. */
const NOTABLE_OF_RANGES = 0.1;

/** Whether a difference is shown; `isKept` says that it is none of the accidents that many tests bring. */
export function judge(difference: Difference, isKept: boolean): JudgedDifference {
  const { change, metric, noise } = difference;
  const notable = metric.kind === "share" ? NOTABLE_SHARE : noise === "ranges" ? NOTABLE_OF_RANGES : NOTABLE_CHANGE;
  if (change === undefined || !isKept || Math.abs(change) < notable)
    return { ...difference, outcome: "no-difference-shown" };
  const isBetter = metric.better === "lower" ? change < 0 : change > 0;
  return { ...difference, outcome: isBetter ? "better" : "worse" };
}

/** The verdict on an arm at a level. */
export function verdictAt(
  baseline: ArmAtLevel,
  arm: ArmAtLevel,
  differences: readonly JudgedDifference[],
  found: readonly Obstacle[],
): Verdict {
  const structural = found.filter(({ code }) => code !== "saturation");
  if (structural.length > 0) return { kind: "not-comparable", reasons: structural.map(({ why }) => why) };
  const completed = differences.find(({ metric }) => metric.name === "completedShare");
  if (completed !== undefined && completed.outcome !== "no-difference-shown") {
    const trade = tradeOf(baseline, arm, completed);
    if (trade !== undefined) return trade;
  }
  if (found.length > 0) {
    return { kind: "not-comparable", reasons: found.map(({ why }) => why), isPastSaturation: true };
  }
  return ofDifferences(differences);
}

function ofDifferences(differences: readonly JudgedDifference[]): Verdict {
  const worse = differences.filter(({ outcome }) => outcome === "worse");
  const better = differences.filter(({ outcome }) => outcome === "better");
  const reasons = [...worse, ...better].map(describe);
  if (worse.length > 0 && better.length > 0) return { kind: "mixed", reasons };
  if (worse.length > 0) return { kind: "worse", reasons };
  if (better.length > 0) return { kind: "better", reasons };
  const isBlind = differences.every(({ noise, metric }) => noise === "none" || metric.name === "completedShare");
  const why = isBlind
    ? "there is one run per arm and no record of each request, so nothing says how far a repetition would differ"
    : "every difference is within what runs differ by anyway, or too small to matter";
  return { kind: "no-difference-shown", reasons: [why] };
}

/** Fewer completed and quicker, or more completed and slower: a choice, not an improvement. */
function tradeOf(baseline: ArmAtLevel, arm: ArmAtLevel, completed: JudgedDifference): Verdict | undefined {
  const loses = completed.outcome === "worse";
  const [fewer, more] = loses ? [arm, baseline] : [baseline, arm];
  const [quick, slow] = [fewer, more].map((group) => latencyOnCompleted(group));
  if (quick === undefined || slow === undefined || quick.value >= slow.value * (1 - NOTABLE_CHANGE)) return undefined;
  const lost = fewer.accounting.offered - fewer.accounting.completed;
  const share = ((100 * lost) / fewer.accounting.offered).toFixed(1);
  const times = (slow.value / quick.value).toFixed(1);
  return {
    kind: "traded",
    reasons: [
      `completeness traded for latency: ${fewer.arm} did not complete ${count(lost)} of ${count(fewer.accounting.offered)} requests (${share} %), ` +
        `${said(fewer)}and its TTFT ${quick.name} of ${seconds(quick.value)} against ${seconds(slow.value)} (${times} × lower) speaks only for those it did`,
      `${more.arm} did not complete ${count(more.accounting.offered - more.accounting.completed)} of ${count(more.accounting.offered)}`,
    ],
  };
}

/** What most of the lost requests were told. */
function said({ refusals, accounting }: ArmAtLevel): string {
  const [first] = refusals;
  if (first === undefined) return "";
  const lost = accounting.offered - accounting.completed;
  const status = first.status === null ? first.account : `HTTP ${first.status}`;
  const share = first.count === lost ? "all" : `${count(first.count)} of them`;
  return `${share} ${status}${first.message === "" ? "" : ` "${first.message}"`}, `;
}

function latencyOnCompleted({ latencies }: ArmAtLevel): { name: string; value: number } | undefined {
  for (const name of ["p50", "mean"] as const) {
    const value = valueOf(latencies.ttftMs.completed[name]);
    if (value !== undefined) return { name: name === "mean" ? "mean" : "p50", value };
  }
  return undefined;
}

/**
 * The verdict on an arm over all levels. A level at which both arms are past saturation is left to the others. One that
 * cannot be compared for another reason is not: an arm may have completed nothing there.
 */
export function overallVerdict(levels: readonly Verdict[]): VerdictKind {
  const kinds = new Set(levels.map(({ kind }) => kind));
  if (kinds.has("traded")) return "traded";
  if (kinds.has("mixed") || (kinds.has("better") && kinds.has("worse"))) return "mixed";
  if (kinds.has("worse")) return "worse";
  const isBarred = levels.some(({ kind, isPastSaturation }) => kind === "not-comparable" && isPastSaturation !== true);
  if (isBarred) return "not-comparable";
  if (kinds.has("better")) return "better";
  return kinds.has("no-difference-shown") ? "no-difference-shown" : "not-comparable";
}

/** A verdict in words. */
export const VERDICT_WORDS: Readonly<Record<VerdictKind, string>> = {
  better: "better",
  worse: "worse",
  mixed: "better in some respects, worse in others",
  "no-difference-shown": "no difference shown",
  traded: "not comparable: completeness traded for latency",
  "not-comparable": "not comparable",
};

/** What stands in place of a gain or a loss where two arms cannot be held against each other; undefined where they can. */
export function withheld({ kind }: Verdict): string | undefined {
  if (kind === "traded") return "completeness traded";
  return kind === "not-comparable" ? "not comparable" : undefined;
}

function describe({ metric, change, interval, outcome, baseline, arm }: JudgedDifference): string {
  const size =
    change === undefined || !Number.isFinite(change)
      ? arm.state === "not-reached"
        ? "not reached"
        : "reached, where the baseline's is not"
      : metric.kind === "share"
        ? `${signed(100 * change)} percentage points`
        : `${signed(100 * change)} %`;
  const range =
    interval === undefined || baseline.state !== "ok" || arm.state !== "ok"
      ? ""
      : ` (95 % interval ${signed(100 * interval.low)} to ${signed(100 * interval.high)})`;
  return `${metric.title} ${outcome}: ${size}${range}`;
}

function signed(value: number): string {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`;
}

function seconds(ms: number): string {
  return ms >= 1000 ? `${(ms / 1000).toFixed(1)} s` : `${ms.toFixed(0)} ms`;
}

function count(value: number): string {
  return value.toLocaleString("en-US");
}
