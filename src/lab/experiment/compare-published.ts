import type { CellLevel, CellResult } from "../results/types.ts";
import { type ArmAtLevel, byArmAndLevel, findMetric, levelName, meanOverRuns, type Metric } from "./metrics.ts";
import type { FittedChoice, PublishedCell, PublishedContrast, PublishedStudy } from "./published.ts";

/** One published number beside ours. */
export interface ComparedValue {
  readonly arm: string;
  readonly level: CellLevel;
  readonly metric: Metric;
  readonly published: number;
  readonly simulated: number | undefined;
  /** Signed: per cent of the published value, or percentage points of a share; undefined where it would say nothing. */
  readonly error: number | undefined;
  readonly saturated: boolean;
  /** What was set with a look at this number. */
  readonly fitted: string | undefined;
}

/** How two arms stand to each other, published and ours. */
export interface ComparedContrast extends PublishedContrast {
  readonly level: CellLevel;
  readonly published: number;
  readonly simulated: number;
  readonly sameSign: boolean;
}

/** All of a study beside all of a run. */
export interface Comparison {
  readonly values: readonly ComparedValue[];
  readonly contrasts: readonly ComparedContrast[];
  /** Published cells that the run does not have. */
  readonly missing: readonly string[];
}

/** Compares a run with a study, cell by cell; nothing is dropped silently. */
export function comparePublished(study: PublishedStudy, cells: readonly CellResult[]): Comparison {
  const groups = byArmAndLevel(cells);
  const values: ComparedValue[] = [];
  const missing: string[] = [];
  for (const cell of study.cells) {
    const group = groups.find((one) => one.arm === cell.arm && isLevel(one.level, cell.level));
    if (group === undefined) missing.push(`${cell.arm} at ${levelName({ workers: 0, ...cell.level })}`);
    else values.push(...comparedValues(study, cell, group));
  }
  return { values, contrasts: study.contrasts.flatMap((contrast) => comparedContrasts(contrast, values)), missing };
}

/** Errors of one metric over the cells that count: neither fitted nor past saturation. */
export interface ErrorSummary {
  readonly metric: Metric;
  readonly arm: string;
  readonly n: number;
  readonly meanAbsolute: number;
  readonly worst: number;
  readonly bias: number;
}

/** The errors by arm and metric. */
export function summariseErrors({ values }: Comparison): ErrorSummary[] {
  const groups = new Map<string, ComparedValue[]>();
  for (const value of values) {
    if (value.error === undefined || value.fitted !== undefined) continue;
    const key = `${value.arm} ${value.metric.name}`;
    groups.set(key, [...(groups.get(key) ?? []), value]);
  }
  return Array.from(groups.values(), (group) => {
    const errors = group.map(({ error }) => error ?? 0);
    const worst = errors.reduce((most, error) => (Math.abs(error) > Math.abs(most) ? error : most), 0);
    return {
      metric: group[0].metric,
      arm: group[0].arm,
      n: errors.length,
      meanAbsolute: errors.reduce((sum, error) => sum + Math.abs(error), 0) / errors.length,
      worst,
      bias: errors.reduce((sum, error) => sum + error, 0) / errors.length,
    };
  });
}

function comparedValues(study: PublishedStudy, cell: PublishedCell, group: ArmAtLevel): ComparedValue[] {
  const saturated = group.saturated || cell.saturated === true;
  return Object.entries(cell.values).flatMap(([name, published]) => {
    const metric = findMetric(name);
    if (metric === undefined) return [];
    const simulated = meanOverRuns(group.cells, metric);
    const isJudged = simulated !== undefined && !(saturated && metric.kind === "latency");
    return {
      arm: group.arm,
      level: group.level,
      metric,
      published,
      simulated,
      error: isJudged ? errorOf(metric, published, simulated) : undefined,
      saturated,
      fitted: study.fitted.find((choice) => isFitted(choice, group, name))?.what,
    };
  });
}

function errorOf({ kind }: Metric, published: number, simulated: number): number | undefined {
  if (kind === "share") return 100 * (simulated - published);
  return published === 0 ? undefined : (100 * (simulated - published)) / published;
}

function isFitted({ arms, levels, metrics }: FittedChoice, { arm, level }: ArmAtLevel, metric: string): boolean {
  // Something that was set on no number of the study is only named.
  if (arms === undefined && levels === undefined && metrics === undefined) return false;
  const numbers = [level.concurrency, level.rateRps, level.speed, level.workers];
  return (
    (arms?.includes(arm) ?? true) &&
    (levels?.some((value) => numbers.includes(value)) ?? true) &&
    (metrics?.includes(metric) ?? true)
  );
}

function comparedContrasts(contrast: PublishedContrast, values: readonly ComparedValue[]): ComparedContrast[] {
  const ofArm = (arm: string): ComparedValue[] =>
    values.filter((value) => value.arm === arm && value.metric.name === contrast.metric);
  const others = ofArm(contrast.against);
  return ofArm(contrast.arm).flatMap((one) => {
    const other = others.find(({ level }) => isLevel(level, one.level));
    if (other === undefined || one.simulated === undefined || other.simulated === undefined) return [];
    const relate = (a: number, b: number): number => (contrast.as === "ratio" ? a / b : a - b);
    const neutral = contrast.as === "ratio" ? 1 : 0;
    const published = relate(one.published, other.published);
    const simulated = relate(one.simulated, other.simulated);
    const sameSign = Math.sign(published - neutral) === Math.sign(simulated - neutral);
    return { ...contrast, level: one.level, published, simulated, sameSign };
  });
}

function isLevel(level: CellLevel, wanted: Partial<CellLevel>): boolean {
  return (["concurrency", "rateRps", "speed", "workers"] as const).every((name) => level[name] === wanted[name]);
}
