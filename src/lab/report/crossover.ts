import { compareLevels, loadKey, type ReportLevel } from "./cell.ts";
import type { LevelComparison } from "./comparisons.ts";
import type { Reading } from "./reading.ts";

/** Along what levels are put in a row. */
export type Axis = "load" | "workers";

/** Where the sign of a difference changes from one level to the next. */
export interface Crossover {
  readonly metric: string;
  readonly axis: Axis;
  readonly from: ReportLevel;
  readonly to: ReportLevel;
  /** The arm is ahead before it and behind after it, or the other way round. */
  readonly turns: "gain into loss" | "loss into gain";
  /** The difference is beyond noise on both sides. */
  readonly isShown: boolean;
}

/** Levels in a row: rising load on the same workers, or more workers under the same load. */
export interface Row {
  readonly axis: Axis;
  readonly levels: readonly LevelComparison[];
}

/** All rows of at least two levels. */
export function rowsOf(levels: readonly LevelComparison[]): Row[] {
  const rows = (axis: Axis, keyOf: (level: ReportLevel) => string): Row[] => {
    const groups = new Map<string, LevelComparison[]>();
    for (const one of levels) {
      const key = keyOf(one.level);
      groups.set(key, [...(groups.get(key) ?? []), one]);
    }
    return [...groups.values()]
      .filter((group) => group.length > 1)
      .map((group) => ({ axis, levels: group.toSorted((a, b) => compareLevels(a.level, b.level)) }));
  };
  return [...rows("load", ({ workers }) => String(workers)), ...rows("workers", loadKey)];
}

/** Where TTFT changes sides in a row. */
export function crossoversIn({ axis, levels }: Row): Crossover[] {
  return ["ttftP50Ms", "ttftP95Ms"].flatMap((metric) => {
    const signs = levels.flatMap(({ level, differences }) => {
      const found = differences.find((difference) => difference.metric.name === metric);
      const sign = found === undefined ? 0 : signOf(found.baseline, found.arm);
      return sign === 0 || found === undefined ? [] : [{ level, sign, outcome: found.outcome }];
    });
    return signs.slice(1).flatMap((after, at): Crossover[] => {
      const before = signs[at];
      if (before.sign === after.sign) return [];
      const isShown = before.outcome !== "no-difference-shown" && after.outcome !== "no-difference-shown";
      const turns = after.sign > 0 ? "gain into loss" : "loss into gain";
      return [{ metric, axis, from: before.level, to: after.level, turns, isShown }];
    });
  });
}

/** Above 0 if the arm is slower; 0 where ranges overlap or both were not reached. */
function signOf(baseline: Reading, arm: Reading): number {
  const [a, b] = [rangeOf(baseline), rangeOf(arm)];
  if (a === undefined || b === undefined) return 0;
  return b.low > a.high ? 1 : b.high < a.low ? -1 : 0;
}

function rangeOf(reading: Reading): { low: number; high: number } | undefined {
  switch (reading.state) {
    case "ok":
      return { low: reading.value, high: reading.value };
    case "between":
      return reading;
    case "not-reached":
      return { low: Infinity, high: Infinity };
    case "too-few":
    case "unavailable":
      return undefined;
  }
}
