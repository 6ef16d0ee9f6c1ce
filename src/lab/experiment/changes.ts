import { WarmpathError } from "../../core/errors.ts";
import type { CacheState, CellOrder, Experiment } from "./types.ts";

/** What a command line may have otherwise than the file; what is undefined stays. */
export interface Changes {
  readonly warmUpSeconds?: number | undefined;
  readonly warmUpRequests?: number | undefined;
  readonly windowSeconds?: number | undefined;
  readonly drainSeconds?: number | undefined;
  readonly cacheState?: CacheState | undefined;
  readonly order?: CellOrder | undefined;
}

/** The experiment with other times and another start; results have it as if the file said so. */
export function changed(experiment: Experiment, { order, ...changes }: Changes): Experiment {
  const given = Object.entries(changes).filter(([, value]) => value !== undefined);
  if (changes.windowSeconds === 0) throw invalid("the window must be longer than 0 s");
  if (changes.cacheState === "carried-over" && experiment.load.speed !== undefined) {
    throw invalid("cacheState must be cold or primed for a schedule, which has nothing before its beginning");
  }
  return {
    ...experiment,
    ...(Object.fromEntries(given) as Partial<Experiment>),
    ...(order === undefined ? {} : { live: { ...experiment.live, order } }),
  };
}

function invalid(message: string): WarmpathError {
  return new WarmpathError("WP_INVALID_INPUT", message);
}
