import { type ArmComparison, compareAll } from "../../../lab/report/comparisons.ts";
import type { ReportInput, ReportModel } from "../../../lab/report/model.ts";
import { overallVerdict, type VerdictKind } from "../../../lab/report/verdict.ts";

/** Two folders compared: every arm of one with its counterpart in the other. */
export interface ComparedFolders {
  readonly comparisons: readonly ArmComparison[];
  /** Arms that have no counterpart. */
  readonly alone: readonly string[];
  readonly verdict: VerdictKind;
}

/** Pairs arms by the name they have in their folders; one arm each is a pair whatever it is called. */
export function compareFolders(model: ReportModel, input: ReportInput): ComparedFolders {
  const arms = model.arms.map(({ name }) => ({ name, own: ownName(name, input) }));
  const folders = [...new Set(arms.map(({ name, own }) => folderOf(name, own)))];
  const [before, after] = folders.map((folder) => arms.filter(({ name, own }) => folderOf(name, own) === folder));
  if (before === undefined || after === undefined || folders.length !== 2) {
    return { comparisons: [], alone: arms.map(({ name }) => name), verdict: "not-comparable" };
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
  const levels = comparisons.flatMap((comparison) => comparison.levels.map(({ verdict }) => verdict));
  return {
    comparisons,
    alone: arms.map(({ name }) => name).filter((name) => !paired.has(name)),
    verdict: levels.length === 0 ? "not-comparable" : overallVerdict(levels),
  };
}

/** What an arm is called inside its folder. */
function ownName(name: string, { results }: ReportInput): string {
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
