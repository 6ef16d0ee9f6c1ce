import type { Check } from "../results/types.ts";

/** Policies that choose by what workers have cached, and so are nothing without knowing it. */
const CHOOSE_BY_CACHE: ReadonlySet<string> = new Set([
  "kv-cost",
  "cache-threshold",
  "product",
  "prefix-score",
  "warmpath",
]);

export function choosesByCache(policy: string): boolean {
  return CHOOSE_BY_CACHE.has(policy);
}

/** As many workers serve as the level says; `ready` is undefined where nobody tells. */
export function checkWorkers(ready: number | undefined, wanted: number): Check {
  const code = "workers-ready";
  if (ready === undefined) return unavailable(code, "the target does not tell how many workers are ready");
  const detail = `${ready} of ${wanted} workers are ready`;
  return ready === wanted ? passed(code, detail) : failed(code, detail);
}

/** What the warm-up has shown of an arm. */
export interface WarmUpFacts {
  readonly policy: string;
  /** KV events that reached the router; undefined where nobody tells. */
  readonly events: number | undefined;
  /** Answered requests, and their prompt and cached tokens where engines tell them. */
  readonly requests: number;
  readonly promptTokens: number;
  readonly cachedTokens: number | undefined;
}

/** Fewer requests than this prove nothing. */
const ENOUGH_REQUESTS = 10;

/** Whether the events that the arm's policy lives by arrive. */
export function checkEvents({ policy, events }: WarmUpFacts): Check {
  const code = "kv-events";
  if (events === undefined) return unavailable(code, "the target does not tell whether KV events arrive");
  const detail = `${events} KV events have reached the router`;
  if (events > 0 || !choosesByCache(policy)) return passed(code, detail);
  return failed(code, `${detail}, and ${policy} chooses by them`);
}

/** Whether anything is found in caches at all. */
export function checkHits({ policy, requests, promptTokens, cachedTokens }: WarmUpFacts): Check {
  const code = "cache-hits";
  if (cachedTokens === undefined) return unavailable(code, "the target does not tell cached tokens");
  const detail = `${cachedTokens} of ${promptTokens} prompt tokens were cached`;
  if (cachedTokens > 0) return passed(code, detail);
  if (requests < ENOUGH_REQUESTS) return unavailable(code, `${detail}, of ${requests} requests: too few to tell`);
  return choosesByCache(policy) ? failed(code, `${detail}: ${policy} has nothing to choose by`) : passed(code, detail);
}

/** Whether caches began as the experiment says. */
export function checkCacheStart(state: string, enforcedBy: string): Check {
  const code = "cache-start";
  if (enforcedBy !== "nothing") return passed(code, `caches are ${state}, by ${enforcedBy}`);
  return failed(code, `nothing makes caches ${state}: name workers, an admin API or a hook reset_caches`);
}

/** Workers that have begun anew between two looks. */
export function restartedWorkers(
  before: ReadonlyMap<string, string> | undefined,
  after: ReadonlyMap<string, string> | undefined,
): string[] {
  if (before === undefined || after === undefined) return [];
  const gone = [...before].flatMap(([worker, identity]) => {
    const now = after.get(worker);
    if (now === undefined) return `worker ${worker} is gone`;
    return now === identity ? [] : `worker ${worker} began anew`;
  });
  const came = [...after.keys()].flatMap((worker) => (before.has(worker) ? [] : `worker ${worker} came`));
  return [...gone, ...came];
}

export function passed(code: string, detail: string): Check {
  return { code, status: "passed", detail };
}

export function failed(code: string, detail: string): Check {
  return { code, status: "failed", detail };
}

export function unavailable(code: string, detail: string): Check {
  return { code, status: "unavailable", detail };
}
