import { Rng } from "../../core/rng.ts";
import type { Experiment, SeedBranch } from "./types.ts";

/** The seeds of one run, the same for every arm and level, so that arms are compared on the same requests. */
export interface RunSeeds extends Readonly<Record<SeedBranch, number>> {
  /** What the run's seeds follow from. */
  readonly run: number;
}

/** The tree: experiment → run → workload, engine, policy, faults; requests and workers are keyed below by their numbers. */
export function runSeeds({ seed, seeds }: Pick<Experiment, "seed" | "seeds">, run: number): RunSeeds {
  const runSeed = new Rng(seed).stream("run").stream(run).u32();
  const branch = (name: SeedBranch): number => {
    const own = seeds[name];
    return own === undefined ? new Rng(runSeed).stream(name).u32() : new Rng(own).stream(run).u32();
  };
  return {
    run: runSeed,
    workload: branch("workload"),
    engine: branch("engine"),
    policy: branch("policy"),
    faults: branch("faults"),
  };
}
