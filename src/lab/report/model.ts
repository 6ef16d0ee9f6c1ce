import type { Slo } from "../../measure/slo.ts";
import type { ArmFacts, CellResult, Comparability, Json } from "../results/types.ts";
import type { PublishedStudy } from "../experiment/published.ts";
import { type Anatomy, anatomyOf, FastestPrefill } from "./anatomy.ts";
import { type Balance, balanceOf } from "./balance.ts";
import { type Capacity, capacities } from "./capacity.ts";
import { compareLevels, levelKey, type ReportCell, type ReportLevel } from "./cell.ts";
import { type ArmComparison, compareAll } from "./comparisons.ts";
import type { CellEvidence } from "./evidence.ts";
import { type ArmAtLevel, type PooledGaps, poolCells } from "./groups.ts";
import { ARM_FLEET, type Settings } from "./settings.ts";

/** A results folder, or a folder with runs of AIPerf. */
export interface ReportSource {
  readonly kind: "warmpath" | "aiperf";
  readonly folder: string;
  readonly experiment: string;
  readonly startedAt: string | undefined;
  readonly finishedAt: string | undefined;
  readonly command: string | undefined;
  readonly versions: Readonly<Record<string, string>>;
  readonly host: Readonly<Record<string, Json>>;
  /** Where it ran, if not on the twin. */
  readonly target: string | undefined;
  /** What was found of the arms before they were measured; only live targets have it. */
  readonly comparability: Comparability | undefined;
  readonly armFacts: readonly ArmFacts[];
  /** When a run went on after it had been cut short. */
  readonly resumed: readonly { readonly at: string; readonly finishedCells: number }[];
  /** The resolved configuration; of AIPerf, nothing. */
  readonly config: { readonly [key: string]: Json } | undefined;
  /** Digest of the prompts, where their texts were kept. */
  readonly promptsDigest: string | undefined;
  /** Whether there is a record of each request, and if not, why. */
  readonly records: { readonly isComplete: boolean; readonly remark: string | undefined };
}

/** Everything that a report is computed from. */
export interface ReportInput {
  readonly sources: readonly ReportSource[];
  readonly cells: readonly ReportCell[];
  readonly settings: ReadonlyMap<string, Settings>;
  readonly evidence: ReadonlyMap<string, CellEvidence>;
  readonly gaps: ReadonlyMap<string, PooledGaps>;
  /** What could not be read, one line each. */
  readonly problems: readonly string[];
  /** The arm that others are held against; the first round-robin unless told. */
  readonly baseline: string | undefined;
  /** Limits in place of the experiment's own. */
  readonly slo: Slo | undefined;
  readonly published: PublishedStudy | undefined;
  /** The cells of results files as they were read; a published table is held against them. */
  readonly results: readonly CellResult[];
}

/** All numbers of a report. */
export interface ReportModel {
  readonly title: string;
  readonly sources: readonly ReportSource[];
  readonly problems: readonly string[];
  readonly arms: readonly ReportArm[];
  readonly baseline: string;
  readonly levels: readonly ReportLevel[];
  readonly cells: readonly ReportCell[];
  readonly groups: readonly ArmAtLevel[];
  readonly comparisons: readonly ArmComparison[];
  readonly slo: Slo;
  readonly capacities: readonly Capacity[];
  readonly anatomies: ReadonlyMap<ArmAtLevel, Anatomy>;
  readonly balances: ReadonlyMap<ArmAtLevel, Balance>;
  /** Sequences that a worker computes at a time, where the configuration says it. */
  readonly batchLimit: number | undefined;
  readonly published: PublishedStudy | undefined;
  readonly results: readonly CellResult[];
}

export interface ReportArm {
  readonly name: string;
  readonly policy: string | undefined;
  readonly settings: Settings | undefined;
  /** Numbers of the sources that have it. */
  readonly sources: readonly number[];
}

/** Names under which people file the arm without the feature. */
const BASELINE_NAMES = /^(.*[/_ -])?(off|baseline|rr|round[-_ ]?robin|control|before|without.*|no[-_ ]?router)$/i;

/** Computes everything that a report says. */
export function buildModel(input: ReportInput): ReportModel {
  const { sources, cells, settings } = input;
  const groups = poolCells(
    cells,
    (cell) => input.evidence.get(cell.id),
    (key) => input.gaps.get(key),
  );
  const arms = armsOf(cells, settings);
  const baseline = baselineOf(arms, input.baseline);
  const slo = input.slo ?? cells.find(({ slo: limits }) => Object.keys(limits).length > 0)?.slo ?? {};
  const fastest = fastestPrefills(groups, settings);
  const batchLimit = batchLimitOf(sources);
  const levels = new Map(groups.map(({ level }) => [levelKey(level), level]));
  return {
    title: [...new Set(sources.map(({ experiment }) => experiment))].join(", "),
    sources,
    problems: input.problems,
    arms,
    baseline,
    levels: [...levels.values()].toSorted(compareLevels),
    cells,
    groups,
    comparisons: compareAll(
      groups,
      arms.map(({ name }) => name),
      baseline,
      { settings, undeclared: undeclaredDifferences(arms, sources) },
    ),
    slo,
    capacities: capacities(groups, slo),
    anatomies: mapOf(groups, (group) => anatomyOf(group, fastest(group))),
    balances: mapOf(groups, (group) => balanceOf(group, fastest(group), batchLimit)),
    batchLimit,
    published: input.published,
    results: input.results,
  };
}

/** The arm at a level. */
export function groupAt(model: ReportModel, arm: string, level: ReportLevel): ArmAtLevel | undefined {
  return model.groups.find((group) => group.arm === arm && levelKey(group.level) === levelKey(level));
}

function armsOf(cells: readonly ReportCell[], settings: ReadonlyMap<string, Settings>): ReportArm[] {
  const names = [...new Set(cells.map(({ arm }) => arm))];
  return names.map((name) => {
    const own = cells.filter(({ arm }) => arm === name);
    return {
      name,
      policy: own[0].policy,
      settings: settings.get(name),
      sources: [...new Set(own.map(({ source }) => source))],
    };
  });
}

function baselineOf(arms: readonly ReportArm[], wanted: string | undefined): string {
  return (
    arms.find(({ name }) => name === wanted)?.name ??
    arms.find(({ policy }) => policy === "round-robin")?.name ??
    arms.find(({ name }) => BASELINE_NAMES.test(name))?.name ??
    arms[0]?.name ??
    ""
  );
}

/** Arms of a live experiment that differ in more than was declared, and why. */
function undeclaredDifferences(arms: readonly ReportArm[], sources: readonly ReportSource[]): Map<string, string[]> {
  return new Map(
    arms.map(({ name, sources: own }) => [
      name,
      own.flatMap((source) => {
        const found = sources[source].comparability;
        return found?.verdict === "not-comparable" ? found.reasons : [];
      }),
    ]),
  );
}

/** Arms whose workers are alike share what the fastest prefills took. */
function fastestPrefills(
  groups: readonly ArmAtLevel[],
  settings: ReadonlyMap<string, Settings>,
): (group: ArmAtLevel) => FastestPrefill {
  const byFleet = new Map<string, FastestPrefill>();
  const keyOf = ({ arm, cells }: ArmAtLevel): string =>
    `${cells[0].source} ${settings.get(arm)?.get(ARM_FLEET) ?? "the experiment's"}`;
  for (const group of groups) {
    const fastest = byFleet.get(keyOf(group)) ?? new FastestPrefill();
    fastest.add(group);
    byFleet.set(keyOf(group), fastest);
  }
  return (group) => byFleet.get(keyOf(group)) ?? new FastestPrefill();
}

function batchLimitOf(sources: readonly ReportSource[]): number | undefined {
  for (const { config } of sources) {
    const fleet = config?.["fleet"] as { readonly engine?: { readonly maxSequences?: Json } } | undefined;
    const limit = fleet?.engine?.maxSequences;
    if (typeof limit === "number") return limit;
  }
  return undefined;
}

function mapOf<Value>(
  groups: readonly ArmAtLevel[],
  of: (group: ArmAtLevel) => Value | undefined,
): Map<ArmAtLevel, Value> {
  return new Map(
    groups.flatMap((group) => {
      const value = of(group);
      return value === undefined ? [] : [[group, value] as const];
    }),
  );
}
