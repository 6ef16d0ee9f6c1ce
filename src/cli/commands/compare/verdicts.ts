import { levelTitle } from "../../../lab/report/cell.ts";
import { type ArmComparison, compareAll } from "../../../lab/report/comparisons.ts";
import type { ReportModel } from "../../../lab/report/model.ts";
import { overallVerdict, type VerdictKind } from "../../../lab/report/verdict.ts";
import type { CollectedInput } from "../report/collect-input.ts";

/** Two folders compared: every arm of one with its counterpart in the other. */
export interface ComparedFolders {
  readonly comparisons: readonly ArmComparison[];
  /** Arms that have no counterpart. */
  readonly alone: readonly string[];
  /** Levels that an arm does not have and its counterpart does. */
  readonly missing: ArmComparison["missing"];
  /** What the baseline has and the other folder has not: the verdict would be on less than was asked. */
  readonly lost: readonly string[];
  readonly verdict: VerdictKind;
}

/** Pairs arms by the name they have in their folders; one arm each is a pair whatever it is called. */
export function compareFolders(model: ReportModel, input: CollectedInput): ComparedFolders {
  // Our own results are read before AIPerf's, whichever of them is the baseline.
  const arms = model.arms
    .toSorted((a, b) => input.arguments[a.sources[0]] - input.arguments[b.sources[0]])
    .map(({ name }) => ({ name, own: ownName(name, input) }));
  const folders = [...new Set(arms.map(({ name, own }) => folderOf(name, own)))];
  const [before, after] = folders.map((folder) => arms.filter(({ name, own }) => folderOf(name, own) === folder));
  if (before === undefined || after === undefined || folders.length !== 2) {
    const alone = arms.map(({ name }) => name);
    return { comparisons: [], alone, missing: [], lost: [], verdict: "not-comparable" };
  }
  const isSingle = before.length === 1 && after.length === 1;
  const paired = new Set<string>();
  const comparisons = after.flatMap((arm) => {
    const other = isSingle ? before[0] : before.find(({ own }) => own === arm.own);
    if (other === undefined) return [];
    paired.add(arm.name).add(other.name);
    const known = { settings: input.settings, undeclared: new Map<string, readonly string[]>() };
    return compareAll(model.groups, [other.name, arm.name], other.name, known);
  });
  const missing = comparisons.flatMap((comparison) => comparison.missing);
  const lost = [
    ...before.flatMap(({ name }) => (paired.has(name) ? [] : [`${name} has no counterpart`])),
    ...missing
      .filter(({ arm }) => after.some(({ name }) => name === arm))
      .map(({ arm, level }) => `${arm} has no results at ${levelTitle(level)}`),
  ];
  return {
    comparisons,
    alone: arms.map(({ name }) => name).filter((name) => !paired.has(name)),
    missing,
    lost,
    verdict: verdictOf(comparisons, lost),
  };
}

/** Not comparable where something of the baseline is missing: a regression may lie where nobody looked. */
function verdictOf(comparisons: readonly ArmComparison[], lost: readonly string[]): VerdictKind {
  const levels = comparisons.flatMap((comparison) => comparison.levels.map(({ verdict }) => verdict));
  const verdict = levels.length === 0 ? "not-comparable" : overallVerdict(levels);
  return lost.length > 0 && verdict !== "traded" ? "not-comparable" : verdict;
}

/** What an arm is called inside its folder. */
function ownName(name: string, { results }: CollectedInput): string {
  return results.map(({ arm }) => arm).find((arm) => name.endsWith(`/${arm}`)) ?? name;
}

function folderOf(name: string, own: string): string {
  return name === own ? name : name.slice(0, -own.length - 1);
}

const EXIT_CODES: Readonly<Record<VerdictKind, number>> = {
  better: 0,
  "no-difference-shown": 0,
  worse: 3,
  mixed: 4,
  traded: 5,
  "not-comparable": 5,
};
const EXIT_NOT_BETTER = 6;

/** The exit code of a verdict; documented in docs/reference/cli.md. */
export function exitCodeOf(verdict: VerdictKind, expected: "better" | undefined): number {
  return verdict === "no-difference-shown" && expected === "better" ? EXIT_NOT_BETTER : EXIT_CODES[verdict];
}
