import type { ArmComparison, LevelComparison } from "./comparisons.ts";
import type { ArmAtLevel } from "./groups.ts";
import { valueOf } from "./reading.ts";

/**
 * The rule of the A/B guide: cache-aware routing is worth it from 20 % of TTFT on if nothing else gets worse; below 10 %,
 * or where latency varies more, plain routing is better; in between the guide says nothing.
 */
export interface Decision {
  readonly level: LevelComparison;
  /** The smaller of the improvements of p50 and p95; undefined where one is not known. */
  readonly improvement: number | undefined;
  readonly worse: readonly string[];
  /** How much farther p95 lies from p50 than in the baseline; above 1 latency varies more. */
  readonly variance: number | undefined;
  readonly conclusion: "beneficial" | "plain routing is better" | "between the two" | "cannot be decided";
}

const WORTH_IT = 0.2;
const NOT_WORTH_IT = 0.1;
/** Of a ratio that moves by a few per cent from run to run, this much is an increase. */
const MORE_VARIANCE = 1.1;

export function decide({ levels }: ArmComparison): Decision[] {
  return levels.map((level) => {
    const improvement = improvementOf(level);
    const worse = level.differences.flatMap(({ outcome, metric }) => (outcome === "worse" ? [metric.title] : []));
    const variance = varianceRatio(level);
    return { level, improvement, worse, variance, conclusion: conclude(level, improvement, worse, variance) };
  });
}

function conclude(
  { verdict }: LevelComparison,
  improvement: number | undefined,
  worse: readonly string[],
  variance: number | undefined,
): Decision["conclusion"] {
  if (verdict.kind === "not-comparable" || verdict.kind === "traded" || improvement === undefined)
    return "cannot be decided";
  if (improvement < NOT_WORTH_IT || (variance !== undefined && variance > MORE_VARIANCE))
    return "plain routing is better";
  if (improvement > WORTH_IT && worse.length === 0) return "beneficial";
  return worse.length > 0 ? "plain routing is better" : "between the two";
}

function improvementOf({ differences }: LevelComparison): number | undefined {
  const changes = ["ttftP50Ms", "ttftP95Ms"].map(
    (name) => differences.find(({ metric }) => metric.name === name)?.change,
  );
  if (changes.some((change) => change === undefined || !Number.isFinite(change))) return undefined;
  return Math.min(...changes.map((change) => -(change ?? 0)));
}

function varianceRatio({ baseline, arm }: LevelComparison): number | undefined {
  const distance = ({ latencies }: ArmAtLevel): number | undefined => {
    const [p50, p95] = [valueOf(latencies.ttftMs.offered.p50), valueOf(latencies.ttftMs.offered.p95)];
    return p50 === undefined || p95 === undefined ? undefined : p95 - p50;
  };
  const [x, y] = [distance(baseline), distance(arm)];
  return x === undefined || y === undefined || x === 0 ? undefined : y / x;
}

/** What of the workload speaks for or against cache-aware routing, by the guide's list. */
export interface WorkloadFactor {
  readonly factor: string;
  readonly value: string;
  readonly speaks: "for" | "against" | "neither" | "unknown";
}

export function workloadFactors(groups: readonly ArmAtLevel[]): WorkloadFactor[] {
  const ceilings = groups.flatMap(({ cache }) => cache.ceiling ?? []);
  const ceiling = ceilings.length === 0 ? undefined : ceilings.reduce((sum, value) => sum + value, 0) / ceilings.length;
  const prompts = groups.flatMap(({ tokens }) => tokens.promptMean ?? []);
  const prompt = prompts.length === 0 ? undefined : prompts.reduce((sum, value) => sum + value, 0) / prompts.length;
  const later = laterTurnShare(groups);
  return [
    {
      factor: "Prefix overlap (share of prompt tokens that an endless cache holds)",
      value: ceiling === undefined ? "unknown" : `${(100 * ceiling).toFixed(1)} %`,
      speaks: ceiling === undefined ? "unknown" : ceiling >= 0.3 ? "for" : ceiling < 0.1 ? "against" : "neither",
    },
    {
      factor: "Prompt length, mean (above 2,000 tokens caching saves much, below 1,000 little)",
      value: prompt === undefined ? "unknown" : `${Math.round(prompt).toLocaleString("en-US")} tokens`,
      speaks: prompt === undefined ? "unknown" : prompt > 2000 ? "for" : prompt < 1000 ? "against" : "neither",
    },
    {
      factor: "Requests that continue a conversation",
      value: later === undefined ? "unknown" : `${(100 * later).toFixed(1)} %`,
      speaks: later === undefined ? "unknown" : later >= 0.3 ? "for" : later < 0.05 ? "against" : "neither",
    },
  ];
}

function laterTurnShare(groups: readonly ArmAtLevel[]): number | undefined {
  let later = 0;
  let all = 0;
  for (const { columns } of groups.flatMap(({ evidence }) => evidence ?? [])) {
    for (const turn of columns.turn) if (turn > 0) later += 1;
    all += columns.length;
  }
  return all === 0 ? undefined : later / all;
}
