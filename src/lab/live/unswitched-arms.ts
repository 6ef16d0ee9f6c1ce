import { createPolicy } from "../../core/policy/registry.ts";
import { cellsOf, fleetOf } from "../experiment/cells.ts";
import type { Arm, Experiment } from "../experiment/types.ts";

/**
 * Why an experiment cannot be run on an endpoint as its file stands: arms, or numbers of workers, that nobody would switch
 * between. Results would tell them apart by their names although the endpoint was the same all along. Undefined where it can.
 */
export function unswitchedArms(experiment: Experiment, url: string): string | undefined {
  const { arms, live = {} } = experiment;
  // Whatever an arm is made of, the command of the file is trusted to make it.
  if (live.hooks?.before_arm !== undefined) return undefined;
  const hasAdmin = live.adminUrl !== undefined;
  const [first] = arms;
  const served = (arm: Arm): string => JSON.stringify([enginesOf(experiment, arm), hasAdmin ? {} : routerOf(arm)]);
  const other = arms.find((arm) => served(arm) !== served(first));
  if (other !== undefined) {
    const what = `nothing switches ${url} between the arms ${first.name} and ${other.name}`;
    return hasAdmin
      ? `${what}: live.adminUrl switches policies, and their fleets differ; give a hook before_arm, or one arm with --arms`
      : `${what}; give live.adminUrl (of a Warmpath gateway) or a hook before_arm, or one arm with --arms`;
  }
  const workers = [...new Set(cellsOf(experiment).map(({ level }) => level.workers))];
  const isCounted = hasAdmin || live.hooks?.list_workers !== undefined || live.workers !== undefined;
  if (workers.length === 1 || isCounted) return undefined;
  return `nothing tells how many workers ${url} has, and the levels have ${workers.join(", ")}; give live.adminUrl, live.workers or hooks, or one number with --workers`;
}

/** The engines behind the endpoint; their number is a level's. */
function enginesOf({ fleet }: Experiment, arm: Arm): object {
  const { workers: _, ...engines } = fleetOf(fleet, arm);
  return engines;
}

/**
 * What an admin API sets, or is asked for: an arm with another admission than the gateway's is refused when it is its turn.
 */
function routerOf({ policy, parameters, admission }: Arm): object {
  return { policy, parameters: createPolicy(policy, parameters).parameters, admission };
}
