import { WarmpathError } from "../../core/errors.ts";
import { cellId } from "../results/build-cell.ts";
import type { CellLevel } from "../results/types.ts";
import { type RunSeeds, runSeeds } from "./seeds.ts";
import type { Arm, Experiment, FleetConfig } from "./types.ts";

/** One arm at one level in one run. */
export interface Cell {
  readonly id: string;
  readonly arm: Arm;
  /** The fleet of the arm. */
  readonly fleet: FleetConfig;
  readonly level: CellLevel;
  /** From 1, as people count. */
  readonly run: number;
  readonly seeds: RunSeeds;
}

/** What of an experiment is run; everything unless told. */
export interface Narrowing {
  readonly arms?: readonly string[] | undefined;
  /** Concurrencies (per worker), rates or speeds, whichever the load has. */
  readonly levels?: readonly number[] | undefined;
  readonly runs?: number | undefined;
  readonly workers?: readonly number[] | undefined;
}

/** All cells in the order of the file: arm by arm, level by level, run by run. */
export function cellsOf(experiment: Experiment): Cell[] {
  const { arms, runs } = experiment;
  return arms.flatMap((arm) => {
    const fleet = fleetOf(experiment.fleet, arm);
    return levelsOf(experiment, fleet).flatMap((level) =>
      Array.from({ length: runs }, (_, at): Cell => {
        const run = at + 1;
        return { id: cellId(arm.name, level, run), arm, fleet, level, run, seeds: runSeeds(experiment, run) };
      }),
    );
  });
}

/** The experiment with fewer arms, levels, workers or runs; each that is named must exist. */
export function narrowed(experiment: Experiment, narrowing: Narrowing): Experiment {
  const { load } = experiment;
  const known = load.concurrency ?? load.concurrencyPerWorker ?? load.rateRps ?? load.speed ?? [];
  const keepNumbers = (
    name: string,
    wanted: readonly number[] | undefined,
    all: readonly number[],
  ): readonly number[] => {
    if (wanted === undefined) return all;
    const missing = wanted.find((value) => !all.includes(value));
    if (missing !== undefined) refuse(`${name} ${missing} is not in the experiment; it has ${all.join(", ")}`);
    return all.filter((value) => wanted.includes(value));
  };
  const levels = keepNumbers("level", narrowing.levels, known);
  const names = experiment.arms.map(({ name }) => name);
  for (const arm of narrowing.arms ?? []) {
    if (!names.includes(arm)) refuse(`arm "${arm}" is not in the experiment; it has ${names.join(", ")}`);
  }
  const named = experiment.arms.filter(({ name }) => narrowing.arms?.includes(name) ?? true);
  // An arm may have numbers of its own, which count as much as the experiment's.
  const counts = named.flatMap((arm) => fleetOf(experiment.fleet, arm).workers);
  const kept = keepNumbers("number of workers", narrowing.workers, [...new Set(counts)]);
  return {
    ...experiment,
    arms: narrowing.workers === undefined ? named : withWorkers(named, experiment.fleet, kept),
    fleet: { ...experiment.fleet, workers: onlyOf(experiment.fleet.workers, kept) },
    load: {
      ...load,
      ...(load.concurrency === undefined ? {} : { concurrency: levels }),
      ...(load.concurrencyPerWorker === undefined ? {} : { concurrencyPerWorker: levels }),
      ...(load.rateRps === undefined ? {} : { rateRps: levels }),
      ...(load.speed === undefined ? {} : { speed: levels }),
    },
    runs: narrowing.runs ?? experiment.runs,
  };
}

/** The arms that have any of these numbers of workers, with no others. */
function withWorkers(arms: readonly Arm[], fleet: FleetConfig, kept: readonly number[]): Arm[] {
  return arms.flatMap((arm) => {
    if (!fleetOf(fleet, arm).workers.some((count) => kept.includes(count))) return [];
    const own = arm.fleet?.workers;
    return [own === undefined ? arm : { ...arm, fleet: { ...arm.fleet, workers: onlyOf(own, kept) } }];
  });
}

/** Those that are kept; all where none is, since then every arm that is left has its own. */
function onlyOf(counts: readonly number[], kept: readonly number[]): readonly number[] {
  const left = counts.filter((count) => kept.includes(count));
  return left.length === 0 ? counts : left;
}

/** The fleet of an arm: the experiment's, but for what the arm has otherwise. */
export function fleetOf(fleet: FleetConfig, { fleet: override }: Pick<Arm, "fleet">): FleetConfig {
  const given = Object.entries(override ?? {}).filter(([, value]) => value !== undefined);
  return { ...fleet, ...(Object.fromEntries(given) as Partial<FleetConfig>) };
}

function levelsOf({ load }: Experiment, fleet: FleetConfig): CellLevel[] {
  const { concurrency = [], concurrencyPerWorker = [], rateRps = [], speed = [] } = load;
  return fleet.workers.flatMap((workers) => [
    ...concurrency.map((value): CellLevel => ({ concurrency: value, workers })),
    ...concurrencyPerWorker.map((value): CellLevel => ({ concurrency: value * workers, workers })),
    ...rateRps.map((value): CellLevel => ({ rateRps: value, workers })),
    ...speed.map((value): CellLevel => ({ speed: value, workers })),
  ]);
}

function refuse(message: string): never {
  throw new WarmpathError("WP_INVALID_INPUT", message);
}
