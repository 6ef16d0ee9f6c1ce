import type { CellResult } from "../results/types.ts";
import { byArmAndLevel, levelName } from "./metrics.ts";

/** A run of an arm at a level, and those after it that are equal to it in every number. */
export interface RepeatedRun {
  readonly first: CellResult;
  readonly repeats: readonly CellResult[];
}

/**
 * Runs that repeat another of their arm and level number by number. Where nothing is random, a run more says nothing
 * more; whoever took it for a repetition would be the surer of an accident the more often it was copied.
 */
export function repeatedRuns(cells: readonly CellResult[]): RepeatedRun[] {
  return byArmAndLevel(cells).flatMap(({ cells: runs }) => {
    const byContent = new Map<string, CellResult[]>();
    for (const cell of runs) {
      const content = contentOf(cell);
      const equal = byContent.get(content);
      if (equal === undefined) byContent.set(content, [cell]);
      else equal.push(cell);
    }
    return [...byContent.values()].flatMap(([first, ...repeats]) => (repeats.length === 0 ? [] : [{ first, repeats }]));
  });
}

/** Everything that a run measured, without what it is called and what it was seeded with. */
export function contentOf({ id: _id, run: _run, seed: _seed, ...measured }: CellResult): string {
  return JSON.stringify(measured);
}

/** Which runs repeat which, and in what arms unless it is in all; no line where none does. */
export function describeRepeats(cells: readonly CellResult[]): string[] {
  const groups = byArmAndLevel(cells);
  const byRuns = new Map<string, RepeatedRun[]>();
  for (const found of repeatedRuns(cells)) {
    const said = repeatsInWords(found);
    byRuns.set(said, [...(byRuns.get(said) ?? []), found]);
  }
  return Array.from(byRuns, ([said, found]) => {
    if (found.length === groups.length) return said;
    const arms = [...new Set(found.map(({ first }) => first.arm))].map((arm) => {
      const own = found.filter(({ first }) => first.arm === arm);
      const isEverywhere = own.length === groups.filter((group) => group.arm === arm).length;
      return isEverywhere ? arm : `${arm} at ${own.map(({ first }) => levelName(first.level)).join(", ")}`;
    });
    return `${said} (${arms.join("; ")})`;
  });
}

/** What is to be said after a run in which repetitions did not differ; nothing where all did. */
export function repetitionRemarks(cells: readonly CellResult[]): string[] {
  const found = describeRepeats(cells);
  return found.length === 0 ? [] : [`repetitions did not differ, since nothing in them is random: ${found.join("; ")}`];
}

function repeatsInWords({ first, repeats }: RepeatedRun): string {
  const runs = repeats.map(({ run }) => run);
  const [lowest, highest] = [Math.min(...runs), Math.max(...runs)];
  if (runs.length === 1) return `run ${lowest} repeats run ${first.run} exactly and is counted once`;
  const isRow = runs.length > 3 && highest - lowest === runs.length - 1;
  const all = isRow ? `${lowest} to ${highest}` : `${runs.slice(0, -1).join(", ")} and ${runs.at(-1)}`;
  return `runs ${all} repeat run ${first.run} exactly and are counted once`;
}
