import type { Account } from "./accounts.ts";
import type { Nanoseconds } from "./clock.ts";
import { NO_REPLICA } from "./placement-view.ts";
import type { RoutedRequest } from "./routed-request.ts";

/** How a placed request ended, as its driver saw it. */
export interface Ending {
  readonly outcome: Exclude<Account, "shed" | "unfinished">;
  /** Cached prompt tokens the engine reported, where it did. */
  readonly cachedTokens?: number;
  /** False to take a failure as final although no token has been sent yet. */
  readonly mayRetry?: boolean;
}

/** What the router remembers of a request from its offer to its end. */
export interface OpenRequest {
  readonly request: RoutedRequest;
  /** Placements so far. */
  attempts: number;
  /** Replicas tried before, which a retry leaves out. */
  tried: readonly number[];
  /** Since when it waits in the queue; undefined while it does not. */
  heldNs: Nanoseconds | undefined;
  replica: number;
  decision: number;
  decidedNs: Nanoseconds;
  predictedBlocks: number;
  /** Whether the prediction counted on prompts that were still being computed, so that falling short proves nothing. */
  isPredictionOpen: boolean;
  hasFirstToken: boolean;
}

/** A request as it is before anything has been decided about it. */
export function openRequest(request: RoutedRequest, nowNs: Nanoseconds): OpenRequest {
  return {
    request,
    attempts: 0,
    tried: [],
    heldNs: undefined,
    replica: NO_REPLICA,
    decision: 0,
    decidedNs: nowNs,
    predictedBlocks: 0,
    isPredictionOpen: false,
    hasFirstToken: false,
  };
}
