import { levelOfRun, readRunPath, type RunPath, settingsOfRun } from "./aiperf-places.ts";
import { levelKey, type ReportLevel } from "./cell.ts";
import type { AiperfSummary } from "../../wire/aiperf/summary-file.ts";
import type { Settings } from "./settings.ts";

/** A run of AIPerf, by the folders that lead to it. */
export interface AiperfRun {
  readonly summary: AiperfSummary | undefined;
  /** Folders below those that all runs have in common. */
  readonly below: readonly string[];
  /** All folders of its path. */
  readonly folders: readonly string[];
  /** A name that the arm has whatever its folders are called. */
  readonly arm: string | undefined;
}

/** Where each run stands: its arm, its level and its number among the runs of both. */
export interface AiperfPosition {
  readonly arm: string;
  readonly level: ReportLevel;
  readonly run: number;
}

/** Sorts runs into arms, levels and repetitions; two that claim the same place are numbered on. */
export function placeAiperfRuns(runs: readonly AiperfRun[]): AiperfPosition[] {
  const taken = new Map<string, Set<number>>();
  const paths = runs.map(({ below }) => readRunPath(below));
  return runs.map(({ summary, folders, arm: given }, at) => {
    const path = paths[at];
    const arm = given ?? (armOf(path, paths) || nearestName(folders));
    const level = levelOfRun(summary, folders, withRunOf(path, folders));
    const key = `${arm}|${levelKey(level)}`;
    const numbers = taken.get(key) ?? new Set<number>();
    taken.set(key, numbers);
    let run = withRunOf(path, folders).run ?? numbers.size + 1;
    while (numbers.has(run)) run += 1;
    numbers.add(run);
    return { arm, level, run };
  });
}

/** The settings of each arm, and a line for each arm whose runs at one level were not configured alike. */
export function settingsOfArms(
  runs: readonly AiperfRun[],
  positions: readonly AiperfPosition[],
): { settings: Map<string, Settings>; problems: string[] } {
  const settings = new Map<string, Settings>();
  const byPlace = new Map<string, string>();
  const problems = new Set<string>();
  for (const [at, { summary }] of runs.entries()) {
    const { arm, level } = positions[at];
    if (summary === undefined) continue;
    const own = settingsOfRun(summary, arm);
    if (!settings.has(arm)) settings.set(arm, own);
    const text = JSON.stringify([...own]);
    const key = `${arm}|${levelKey(level)}`;
    if ((byPlace.get(key) ?? text) !== text) problems.add(`${arm}: its runs were not configured alike`);
    byPlace.set(key, text);
  }
  return { settings, problems: [...problems] };
}

/** The number of a run may stand in a folder that all runs have in common, when there is only one. */
function withRunOf(path: RunPath, folders: readonly string[]): RunPath {
  return path.run === undefined ? { ...path, run: readRunPath(folders.slice(-1)).run } : path;
}

/** The folders that name an arm; a name beside numbers of workers that all runs have in common tells no arms apart. */
function armOf({ arm }: RunPath, all: readonly RunPath[]): string {
  const telling = arm.filter((name) => !all.every(({ besideWorkers }) => besideWorkers.includes(name)));
  return (telling.length > 0 ? telling : arm).join("/");
}

/** The last folder that names neither a level nor a run. */
function nearestName(folders: readonly string[]): string {
  const isName = (folder: string): boolean => {
    const { arm, besideWorkers } = readRunPath([folder]);
    return arm.length > besideWorkers.length;
  };
  return folders.findLast(isName) ?? folders.at(-1) ?? "run";
}
