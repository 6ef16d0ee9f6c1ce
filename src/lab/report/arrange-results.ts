import type { CellResult, ResultsFile } from "../results/types.ts";
import { levelKey, type ReportCell } from "./cell.ts";
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
 * one that has others is told apart by the folder, and so is every arm where folders are to be compared.
 */
export function arrangeResults(files: readonly ReadResults[], mode: "pool" | "compare"): ArrangedResults {
  const settings = new Map<string, Settings>();
  const cells: ReportCell[] = [];
  const problems: string[] = [];
  const isAmbiguous = ambiguousArms(files);
  const seen = new Map<string, string>();
  let runsBefore = 0;
  for (const { source, label, results } of files) {
    let mostRuns = 0;
    let repeated = 0;
    for (const result of results.cells) {
      if (result.voided !== undefined && result.voided.length > 0) {
        problems.push(`${label}: ${result.id} is void and not used: ${result.voided.join("; ")}`);
        continue;
      }
      const own = settingsOfArm(results.config, result.arm);
      const name =
        mode === "compare"
          ? nameIn(files, label, result.arm)
          : isAmbiguous(result.arm)
            ? `${label}/${result.arm}`
            : result.arm;
      const content = contentOf(result);
      const key = `${name}|${content}`;
      if (seen.has(key)) {
        repeated += 1;
        continue;
      }
      seen.set(key, label);
      settings.set(name, own);
      const cell = cellOfResult(result, source, name);
      const isTaken = cells.some(
        (other) => other.arm === name && other.run === cell.run && levelKey(other.level) === levelKey(cell.level),
      );
      cells.push(
        isTaken || (mode === "pool" && runsBefore > 0 && !isAmbiguous(result.arm))
          ? { ...cell, run: runsBefore + cell.run }
          : cell,
      );
      mostRuns = Math.max(mostRuns, result.run);
    }
    if (repeated > 0)
      problems.push(`${label}: ${repeated} cells are those of another folder, number by number; they count once`);
    runsBefore += mostRuns;
  }
  return { cells, settings, problems };
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

/** Everything that a run measured, without its number. */
function contentOf({ id: _id, run: _run, ...measured }: CellResult): string {
  return JSON.stringify(measured);
}
