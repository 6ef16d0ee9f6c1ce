import { fleetOf } from "../../../lab/experiment/cells.ts";
import { fleetMemory } from "../../../lab/experiment/memory.ts";
import type { Experiment, FleetConfig } from "../../../lab/experiment/types.ts";
import { type MemoryPlan, memoryPlanLines } from "../../../sim/memory-plan.ts";
import { checkFleet } from "./simulated-fleet.ts";

/** The memory of one of the fleets of an experiment, and the arms that have it. */
export interface FleetPlan {
  readonly arms: readonly string[];
  readonly fleet: FleetConfig;
  readonly plan: MemoryPlan;
}

/** Lays out the memory of every fleet that arms have. */
export function fleetPlans(experiment: Experiment, tokensPerSequence: number): FleetPlan[] {
  const plans = new Map<string, { arms: string[]; fleet: FleetConfig; plan: MemoryPlan }>();
  for (const arm of experiment.arms) {
    const fleet = fleetOf(experiment.fleet, arm);
    const key = JSON.stringify(fleet);
    const known = plans.get(key);
    if (known === undefined) plans.set(key, { arms: [arm.name], fleet, plan: fleetMemory(fleet, tokensPerSequence) });
    else known.arms.push(arm.name);
  }
  return [...plans.values()];
}

/** Refuses an experiment with a fleet that could not run, before anything is run. */
export function checkFleets(experiment: Experiment, tokensPerSequence: number): void {
  for (const arm of experiment.arms) {
    const fleet = fleetOf(experiment.fleet, arm);
    for (const workers of fleet.workers) checkFleet(fleet, workers, tokensPerSequence);
  }
}

/** The plans for a person. */
export function planLines(plans: readonly FleetPlan[]): string[] {
  return plans.flatMap(({ arms, fleet, plan }, at) => {
    const { model, gpu, tensorParallel, workers, engine } = fleet;
    const who = plans.length === 1 ? "" : ` (${arms.join(", ")})`;
    const title = `${model} on ${tensorParallel} x ${gpu}, ${engine.profile}, ${workers.join(" or ")} workers, per GPU${who}`;
    return [...(at === 0 ? [] : [""]), title, ...memoryPlanLines(plan)];
  });
}
