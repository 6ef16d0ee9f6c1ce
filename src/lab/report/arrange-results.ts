import { contentOf, describeRepeats } from "../experiment/repeated-runs.ts";
import type { CellResult, ResultsFile } from "../results/types.ts";
import { levelKey, type ReportCell, runsOf } from "./cell.ts";
import { cellOfResult } from "./from-results.ts";
import { type Settings, settingsOfArm } from "./settings.ts";

/** A results file, and the number of its source in the report. */
export interface ReadResults {
  readonly source: number;
  /** What tells it from the other folders, in a word or two. */
  readonly label: string;
  readonly results: ResultsFile;
}

/** Cells of several results files under names that tell arms apart. */
export interface ArrangedResults {
  readonly cells: readonly ReportCell[];
  readonly settings: ReadonlyMap<string, Settings>;
  readonly problems: readonly string[];
}

/**
 * Puts several results files side by side. An arm that has the same settings in all of them is one arm with more runs;
 * one that has others is told apart by the folder, and so is every arm where folders are to be compared. Arms that were
 * run one folder each, on the same seeds, keep the numbers of their runs, by which they are paired. Runs that are equal
 * number by number count once, in one folder as in several.
 */
export function arrangeResults(files: readonly ReadResults[], mode: "pool" | "compare"): ArrangedResults {
  const settings = new Map<string, Settings>();
  const cells: ReportCell[] = [];
  const problems: string[] = [];
  const isAmbiguous = ambiguousArms(files);
  const seen = new Map<string, { readonly at: number; readonly source: number }>();
  const seedOfRun = new Map<number, number>();
  let runsBefore = 0;
  for (const { source, label, results } of files) {
    const usable = usableCells(results, label, problems);
    const nameOf = (arm: string): string =>
      mode === "compare" ? nameIn(files, label, arm) : isAmbiguous(arm) ? `${label}/${arm}` : arm;
    const areOtherArms = usable.every(({ arm }) => cells.every((other) => other.arm !== nameOf(arm)));
    const areSameSeeds = usable.every(({ run, seed }) => (seedOfRun.get(run) ?? seed) === seed);
    const goesOn = mode === "pool" && runsBefore > 0 && !(areOtherArms && areSameSeeds);
    let mostRuns = 0;
    let ofOthers = 0;
    for (const result of usable) {
      const name = nameOf(result.arm);
      const cell = cellOfResult(result, source, name);
      const isTaken = cells.some(
        (other) =>
          other.arm === name && runsOf(other).includes(cell.run) && levelKey(other.level) === levelKey(cell.level),
      );
      const isLater = isTaken || (goesOn && !isAmbiguous(result.arm));
      const run = isLater ? runsBefore + cell.run : cell.run;
      mostRuns = Math.max(mostRuns, result.run);
      seedOfRun.set(run, result.seed);
      const key = `${name}|${contentOf(result)}`;
      const first = seen.get(key);
      if (first === undefined) {
        seen.set(key, { at: cells.length, source });
        settings.set(name, settingsOfArm(results.config, result.arm));
        cells.push({ ...cell, run });
      } else {
        if (first.source !== source) ofOthers += 1;
        cells[first.at] = { ...cells[first.at], repeats: [...cells[first.at].repeats, run] };
      }
    }
    for (const said of describeRepeats(usable)) problems.push(`${label}: ${said}`);
    if (ofOthers > 0)
      problems.push(`${label}: ${ofOthers} cells are those of another folder, number by number; they count once`);
    runsBefore += mostRuns;
  }
  return { cells, settings, problems };
}

function usableCells({ cells }: ResultsFile, label: string, problems: string[]): CellResult[] {
  return cells.filter(({ id, voided = [] }) => {
    if (voided.length > 0) problems.push(`${label}: ${id} is void and not used: ${voided.join("; ")}`);
    return voided.length === 0;
  });
}

/** Two folders of one arm each are compared whatever their arms are called; else arms of the same name are. */
function nameIn(files: readonly ReadResults[], label: string, arm: string): string {
  const isSingle = files.every(({ results }) => new Set(results.cells.map((cell) => cell.arm)).size === 1);
  return isSingle ? label : `${label}/${arm}`;
}

function ambiguousArms(files: readonly ReadResults[]): (arm: string) => boolean {
  const texts = new Map<string, Set<string>>();
  for (const { results } of files) {
    for (const arm of new Set(results.cells.map((cell) => cell.arm))) {
      const text = JSON.stringify([...settingsOfArm(results.config, arm)]);
      texts.set(arm, (texts.get(arm) ?? new Set()).add(text));
    }
  }
  return (arm) => (texts.get(arm)?.size ?? 0) > 1;
}
