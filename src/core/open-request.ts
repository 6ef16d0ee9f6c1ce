import type { Account } from "./accounts.ts";
import type { Nanoseconds } from "./clock.ts";
import { NO_REPLICA } from "./placement-view.ts";
import type { RoutedRequest } from "./routed-request.ts";

/** The rest of a request whose answer was cut: the prompt with what the client already has of the answer behind it. */
export type Continuation = Pick<RoutedRequest, "promptTokens" | "sequence" | "blocks" | "maxOutputTokens">;

/** Blocks of a prompt with its answer behind it. */
export interface KeptBlocks {
  readonly sequence: Uint32Array;
  readonly blocks: number;
}

/** How a placed request ended, as its driver saw it. */
export interface Ending {
  readonly outcome: Exclude<Account, "shed" | "unfinished">;
  /** Cached prompt tokens the engine reported, where it did. */
  readonly cachedTokens?: number;
  /** What a replica without events must hold at the end, where its driver heard the answer. */
  readonly kept?: KeptBlocks | undefined;
  /** False to take a failure as final although no token has been sent yet. */
  readonly mayRetry?: boolean;
  /** What to place elsewhere, although the answer had begun. */
  readonly continuation?: Continuation;
}

/** What the router remembers of a request from its offer to its end. */
export interface OpenRequest {
  request: RoutedRequest;
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
  /** Blocks that others have computed there since, so that they stay whatever becomes of this one. */
  provenBlocks: number;
  /** Whether the prediction counted on prompts that were still being computed, so that falling short proves nothing. */
  isPredictionOpen: boolean;
  hasFirstToken: boolean;
  /** Decision whose cut answer is being continued; 0 for none. */
  continues: number;
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
    provenBlocks: 0,
    isPredictionOpen: false,
    hasFirstToken: false,
    continues: 0,
  };
}

/** Whether another attempt may follow one that ended so: nothing was answered yet, or what was answered can be continued, once. */
export function mayTryAgain(open: OpenRequest, ending: Ending, maxAttempts: number): boolean {
  const { outcome, mayRetry, continuation } = ending;
  if (mayRetry === false) return false;
  if (continuation !== undefined) return open.continues === 0;
  return (outcome === "failed" || outcome === "rejected") && !open.hasFirstToken && open.attempts < maxAttempts;
}

/** Asks for the rest of a cut answer from now on. Somebody is reading it, so it waits behind nobody, and has met its deadline. */
export function continueWith(open: OpenRequest, continuation: Continuation): void {
  const { deadlineNs: _, maxOutputTokens: __, ...request } = open.request;
  open.request = { ...request, ...continuation, priority: Number.POSITIVE_INFINITY };
  open.continues = open.decision;
  open.hasFirstToken = false;
}

/** Blocks that a prompt was predicted to find, and those it found; undefined where falling short proves nothing. */
export function predictionHeld(
  open: OpenRequest,
  cachedTokens: number,
  blockTokens: number,
): { readonly predicted: number; readonly observed: number } | undefined {
  // A whole hit is expected one block short: its last token is computed again.
  const most = Math.floor(Math.max(0, open.request.promptTokens - 1) / blockTokens);
  const predicted = Math.min(open.predictedBlocks, most);
  const observed = Math.ceil(cachedTokens / blockTokens);
  return observed < predicted && open.isPredictionOpen ? undefined : { predicted, observed };
}
