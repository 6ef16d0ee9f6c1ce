import { UNAVAILABLE } from "../../core/request-record.ts";
import type { MeasurementWindow } from "../../measure/window.ts";
import type { CellCache } from "../results/types.ts";
import type { CounterName } from "./page-reading.ts";
import type { PageHistory } from "./sampler.ts";
import { riseOf } from "./worker-figures.ts";

/**
 * The shares of a live cell, each from the best source there is: what was found from the usage of the answers, else from
 * the frontend's own count; what was predicted from the gateway's counters, since no answer tells it. A source is named.
 */
export function withCounters(
  cache: CellCache,
  histories: readonly PageHistory[],
  window: MeasurementWindow,
  requests: number,
): CellCache {
  const rise = (counter: CounterName): number | undefined => {
    const rises = histories.flatMap(({ readings }) => riseOf(counter, readings, window) ?? []);
    return rises.length === 0 ? undefined : rises.reduce((sum, value) => sum + value, 0);
  };
  return {
    ...cache,
    ...predicted(cache, shareOf(rise("predictedCachedTokens"), rise("placedPromptTokens")), requests),
    ...observed(
      cache,
      shareOf(rise("frontendCachedTokens"), rise("frontendPromptTokens")),
      rise("frontendCachedRequests") ?? 0,
    ),
  };
}

function predicted(cache: CellCache, share: number | undefined, requests: number): Partial<CellCache> {
  if (cache.predicted !== UNAVAILABLE || share === undefined) return {};
  return { predicted: share, predictedRequests: requests, predictedSource: "gateway-metrics" };
}

function observed(cache: CellCache, share: number | undefined, requests: number): Partial<CellCache> {
  if (cache.observed !== UNAVAILABLE) return { observedSource: "usage" };
  if (share === undefined) return {};
  return { observed: share, observedRequests: requests, observedSource: "dynamo_frontend_cached_tokens" };
}

function shareOf(part: number | undefined, whole: number | undefined): number | undefined {
  if (part === undefined || whole === undefined || whole <= 0) return undefined;
  return Math.min(1, part / whole);
}
