import { createPolicy } from "../../core/policy/registry.ts";
import { Rng } from "../../core/rng.ts";
import { meanOf } from "../../measure/sample.ts";
import type { ScoredCell } from "./league.ts";
import { JUDGED_MEASURES } from "./score.ts";
import type { SuiteArm, TunedRival } from "./types.ts";

type Setting = Readonly<Record<string, number | string>>;

/** Settings of a rival to be tried: its default first, then others of its grids, all or so many drawn by the seed. */
export function drawSettings({ policy, grids }: TunedRival, count: number, seed: number): SuiteArm[] {
  const arms = new Map<string, SuiteArm>();
  const add = (setting: Setting): void => {
    const { parameters } = createPolicy(policy, setting);
    const name = JSON.stringify(parameters);
    if (!arms.has(name)) arms.set(name, { name: `${policy} ${name}`, policy, parameters });
  };
  add({});
  // The grids take turns: a large one must not crowd out a small one.
  const pools = grids.map((grid, at) => shuffled(combinations(grid), new Rng(seed).stream(policy).stream(at)));
  for (let turn = 0; arms.size < count && pools.some((pool) => turn < pool.length); turn++) {
    for (const pool of pools) if (turn < pool.length && arms.size < count) add(pool[turn]);
  }
  return [...arms.values()];
}

/** What a setting that did not answer everything is worth: a hundred times worse than the reference. */
const UNREACHED = Math.log(100);

/**
 * How an arm does over cells: the mean over both judged measures and all cells of the logarithm of its ratio to the
 * reference. Lower is better. Ratios are multiplied and not added up, since one overloaded cell would outweigh all others.
 */
export function objectiveOf(cells: readonly ScoredCell[], arm: number, reference: number): number {
  const terms = cells.flatMap(({ scores }) =>
    JUDGED_MEASURES.map((measure) => {
      const own = scores[arm][measure];
      const other = scores[reference][measure];
      if (own === null) return other === null ? 0 : UNREACHED;
      return other === null ? -UNREACHED : Math.log(own / other);
    }),
  );
  return meanOf(terms);
}

function combinations(grid: Readonly<Record<string, readonly (number | string)[]>>): Setting[] {
  return Object.entries(grid).reduce<Setting[]>(
    (settings, [knob, values]) => settings.flatMap((setting) => values.map((value) => ({ ...setting, [knob]: value }))),
    [{}],
  );
}

function shuffled<Item>(items: readonly Item[], rng: Rng): Item[] {
  const order = [...items];
  for (let at = order.length - 1; at > 0; at--) {
    const other = rng.below(at + 1);
    [order[at], order[other]] = [order[other], order[at]];
  }
  return order;
}
