import { mixPair } from "../../core/rng.ts";
import type { Perturbation, Suite, SuiteCell, SuiteSize, SuiteWorkload } from "./types.ts";

/**
 * The cells of a suite: a fixed part of the grid workloads × loads × workers, and a tenth of the grid again with something
 * not as believed. Nothing is drawn: the file alone fixes every cell, and a workload whose data is absent leaves the
 * others as they were.
 */
export function suiteCells(suite: Suite, size: SuiteSize): SuiteCell[] {
  const plain = gridCells(suite, size);
  return [...plain, ...perturbedCells(suite, size, plain)];
}

/**
 * A Latin rule: workload w at load l has those numbers of workers k for which (k − w − l) modulo their count is among
 * `keep` values spread evenly. So every workload meets every load, and all of workers × loads and workers × workloads
 * occur about equally often.
 */
function gridCells({ workloads, workers, fleets }: Suite, size: SuiteSize): SuiteCell[] {
  const kept = new Set(
    Array.from({ length: size.keep }, (_, at) => Math.floor((at * size.workers.length) / size.keep)),
  );
  return workloads.flatMap((workload, w) =>
    size.loads.flatMap((load, l) =>
      workers.flatMap((count): SuiteCell | SuiteCell[] => {
        const k = size.workers.indexOf(count);
        const isAnchor = workload.anchored && fleets[workload.fleet].workers.includes(count);
        const isKept = k >= 0 && kept.has(modulo(k - w - l, size.workers.length));
        return isKept || isAnchor ? cellOf(workload, load, count) : [];
      }),
    ),
  );
}

/** Each perturbation in turn takes the plain cell whose workload, load and workers it, and the others, took least. */
function perturbedCells(suite: Suite, size: SuiteSize, plain: readonly SuiteCell[]): SuiteCell[] {
  const { perturbations, workloads, seed } = suite;
  const grid = workloads.length * size.loads.length * size.workers.length;
  const wanted = Math.min(Math.round(suite.perturbedShare * grid), size.perturbedEach * perturbations.length);
  const uses = new LevelUses(seed);
  const taken = new Map<string, SuiteCell>();
  for (let turn = 0; taken.size < wanted && turn < 2 * wanted; turn++) {
    const perturbation = perturbations[turn % perturbations.length];
    const left = plain.filter(
      (cell) =>
        (perturbation.workloads?.includes(cell.workload) ?? true) && !taken.has(perturbedId(cell, perturbation)),
    );
    const cell = uses.takeLeastUsed(left, perturbation.name);
    if (cell === undefined) continue;
    const id = perturbedId(cell, perturbation);
    taken.set(id, { ...cell, id, perturbation });
  }
  return [...taken.values()];
}

/** So many plain cells in which all workloads, loads and numbers of workers occur about equally often. */
export function spreadCells(suite: Suite, size: SuiteSize, count: number): SuiteCell[] {
  const left = gridCells(suite, size);
  const uses = new LevelUses(suite.seed);
  const taken: SuiteCell[] = [];
  while (taken.length < count) {
    const cell = uses.takeLeastUsed(left, "");
    if (cell === undefined) break;
    taken.push(cell);
    left.splice(left.indexOf(cell), 1);
  }
  return taken;
}

/** Counts how often each level of each factor was taken, in all and under a name. */
class LevelUses {
  readonly #seed: number;
  readonly #uses = new Map<string, number>();
  #turn = 0;

  constructor(seed: number) {
    this.#seed = seed;
  }

  takeLeastUsed(cells: readonly SuiteCell[], name: string): SuiteCell | undefined {
    this.#turn += 1;
    let best: SuiteCell | undefined;
    let least = Infinity;
    for (const [at, cell] of cells.entries()) {
      const used = keysOf(cell, name).reduce((sum, key) => sum + (this.#uses.get(key) ?? 0), 0);
      // Equal ones in an order without pattern, so that not everything begins with the first workload.
      const cost = used + mixPair(this.#seed + this.#turn, at) / 2 ** 32;
      if (cost >= least) continue;
      least = cost;
      best = cell;
    }
    if (best === undefined) return undefined;
    for (const key of keysOf(best, name)) this.#uses.set(key, (this.#uses.get(key) ?? 0) + 1);
    return best;
  }
}

function keysOf({ workload, load, workers }: SuiteCell, name: string): string[] {
  const levels = [`workload ${workload}`, `load ${load}`, `workers ${workers}`];
  return [...levels, ...levels.map((level) => `${name} ${level}`)];
}

function cellOf({ name }: SuiteWorkload, load: number, workers: number): SuiteCell {
  return { id: `${name}/load-${load}/workers-${workers}`, workload: name, load, workers };
}

function perturbedId({ id }: SuiteCell, { name }: Perturbation): string {
  return `${id}/${name}`;
}

function modulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}
