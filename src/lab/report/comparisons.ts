import { keptDiscoveries } from "../../measure/false-discovery.ts";
import { compareLevels, levelKey, loadKey, type ReportLevel } from "./cell.ts";
import { type Obstacle, obstacles, variablesBetween } from "./comparability.ts";
import { differenceOf } from "./differences.ts";
import type { ArmAtLevel } from "./groups.ts";
import { judgedMetrics } from "./judged-metrics.ts";
import { type PairedView, pairedView } from "./pairs.ts";
import type { Settings } from "./settings.ts";
import { judge, type JudgedDifference, overallVerdict, type Verdict, verdictAt, type VerdictKind } from "./verdict.ts";

/** An arm against the baseline, level by level. */
export interface ArmComparison {
  readonly arm: string;
  readonly baseline: string;
  /** Names of the settings that differ; none is an A/A comparison, or arms of which nothing is known. */
  readonly variables: readonly string[];
  readonly isSameArm: boolean;
  readonly levels: readonly LevelComparison[];
  /** Levels that only one of the two arms has. */
  readonly missing: readonly { readonly arm: string; readonly level: ReportLevel }[];
  readonly verdict: VerdictKind;
}

/** Two arms at one level. */
export interface LevelComparison {
  readonly level: ReportLevel;
  readonly baseline: ArmAtLevel;
  readonly arm: ArmAtLevel;
  readonly differences: readonly JudgedDifference[];
  readonly obstacles: readonly Obstacle[];
  readonly paired: PairedView | undefined;
  readonly verdict: Verdict;
}

/** Of the differences that are called shown, this share may be chance. */
const FALSE_DISCOVERY_RATE = 0.05;

/** Compares every arm with the baseline. */
export function compareAll(
  groups: readonly ArmAtLevel[],
  arms: readonly string[],
  baseline: string,
  known: ArmKnowledge,
): ArmComparison[] {
  return arms.filter((arm) => arm !== baseline).map((arm) => compareArms(groups, baseline, arm, known));
}

/** What is known of arms besides what they did. */
export interface ArmKnowledge {
  readonly settings: ReadonlyMap<string, Settings>;
  /** Why an arm differs from the others in more than was declared. */
  readonly undeclared: ReadonlyMap<string, readonly string[]>;
}

function compareArms(
  groups: readonly ArmAtLevel[],
  baseline: string,
  arm: string,
  { settings: all, undeclared }: ArmKnowledge,
): ArmComparison {
  const settings = { baseline: all.get(baseline), arm: all.get(arm) };
  const differs = [...new Set([...(undeclared.get(baseline) ?? []), ...(undeclared.get(arm) ?? [])])];
  const own = groups.filter((group) => group.arm === arm).toSorted((a, b) => compareLevels(a.level, b.level));
  const others = groups.filter((group) => group.arm === baseline);
  const pairs = own.flatMap((group) => {
    const other = counterpart(others, own, group);
    return other === undefined ? [] : [{ arm: group, baseline: other }];
  });
  const hasWindowRates = pairs.every((pair) =>
    [pair.arm, pair.baseline].every(({ rates }) => rates.outputTokensPerSecond !== undefined),
  );
  const metrics = judgedMetrics(pairs[0]?.arm.slo ?? {}, hasWindowRates);
  const raw = pairs.map((pair) => metrics.map((metric) => differenceOf(metric, pair.baseline, pair.arm)));
  const tested = raw.flat().filter(({ chance }) => chance !== undefined);
  const kept = keptDiscoveries(
    tested.map(({ chance }) => chance ?? 1),
    FALSE_DISCOVERY_RATE,
  );
  const isKept = new Set(tested.filter((_, at) => kept[at]));
  const levels = pairs.map((pair, at): LevelComparison => {
    const found = obstacles(pair.baseline, pair.arm, settings, differs);
    const differences = raw[at].map((difference) => judge(difference, isKept.has(difference)));
    return {
      level: pair.arm.level,
      ...pair,
      differences,
      obstacles: found,
      paired: pairedView(pair.baseline, pair.arm),
      verdict: verdictAt(pair.baseline, pair.arm, differences, found),
    };
  });
  const matched = new Set(pairs.flatMap((pair) => [pair.arm, pair.baseline]));
  const variables = variablesBetween(settings.baseline, settings.arm);
  return {
    arm,
    baseline,
    variables,
    isSameArm:
      settings.baseline !== undefined &&
      settings.arm !== undefined &&
      variables.length === 0 &&
      pairs.every((pair) => pair.arm.level.workers === pair.baseline.level.workers),
    levels,
    missing: [...own, ...others]
      .filter((group) => !matched.has(group))
      .map((group) => ({ arm: group.arm === arm ? baseline : arm, level: group.level })),
    verdict: levels.length === 0 ? "not-comparable" : overallVerdict(levels.map(({ verdict }) => verdict)),
  };
}

/** The baseline at the same level; where fleets differ in size, at the same load if that is unambiguous. */
function counterpart(
  others: readonly ArmAtLevel[],
  own: readonly ArmAtLevel[],
  group: ArmAtLevel,
): ArmAtLevel | undefined {
  const same = others.find(({ level }) => levelKey(level) === levelKey(group.level));
  if (same !== undefined) return same;
  const alike = (candidates: readonly ArmAtLevel[]): ArmAtLevel[] =>
    candidates.filter(({ level }) => loadKey(level) === loadKey(group.level));
  return alike(others).length === 1 && alike(own).length === 1 ? alike(others)[0] : undefined;
}
