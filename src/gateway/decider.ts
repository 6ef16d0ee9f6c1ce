import type { ShedReason } from "../core/admission/types.ts";
import type { Ending } from "../core/open-request.ts";
import type { RoutedRequest } from "../core/routed-request.ts";
import type { NotContinued } from "./stream-continuity.ts";

/** A request as it is offered: its deadline counts from now, since the decider may run by another clock. */
export interface OfferedRequest extends Omit<RoutedRequest, "deadlineNs"> {
  /** After this the client no longer wants to start. */
  readonly startWithinMs?: number;
  /** Name of the API key it came with, where keys are asked for. */
  readonly key?: string;
  readonly preparation: PreparationTimes;
}

/** How long it took to know what to ask for. */
export interface PreparationTimes {
  readonly parseMs: number;
  readonly tokenizeMs: number;
  readonly hashMs: number;
}

/** Where a request is to go. */
export interface Placement {
  /** The replica's name, as headers and records have it. */
  readonly worker: string;
  readonly url: string;
  /** Undefined where the worker has one rank alone, and need not be told which. */
  readonly dpRank: number | undefined;
  /** Number of the decision's record; undefined where none is kept. */
  readonly decision: number | undefined;
  /** Whether its end should say what the worker keeps, because the worker does not. */
  readonly isToBeHeard: boolean;
}

/** A request that somebody decides about. It is told where to go any number of times and then, once, that it is over. */
export interface DecidedRequest {
  place(placement: Placement): void;
  /** Turned away: it has ended. */
  shed(reason: ShedReason): void;
  /** The end that was reported is the last one: nobody else is going to try, which may have a reason of its own. */
  over(notRetried?: NotRetried): void;
}

/** Why a failure that could have been tried elsewhere was not. */
export type NotRetried = "retry-budget";

/** What went wrong with an attempt, and by whose fault; stable, for metrics and health. */
export type AttemptFault =
  | "network-down"
  | "connect"
  | "reset"
  | "stream-cut"
  | "stream-error"
  | "status"
  | "first-byte-timeout"
  | "gap-timeout"
  | "client-left"
  | "client-stalled"
  | "proxy-lost"
  | "shutdown";

/** How an attempt ended, with what its driver measured on the way. */
export interface AttemptEnd extends Ending {
  readonly fault?: AttemptFault;
  /** From the arrival of the request to its first content; undefined if none came. */
  readonly ttftMs?: number;
  /** From the arrival of the request to its end. */
  readonly durationMs?: number;
  /** Gaps between chunks with content. */
  readonly gaps?: GapCounts;
  /** Why a stream that was to be continued elsewhere is not. */
  readonly notContinued?: NotContinued;
}

/** Gaps by bucket, in the order of `GAP_BOUNDS_SECONDS`, the last one without bound; and their sum. */
export interface GapCounts {
  readonly counts: Uint32Array;
  readonly sumSeconds: number;
}

/** How fit a decider is to route, for `/ready`. */
export interface Readiness {
  /** Who decides: the decider, or what stands in while it is away. */
  readonly decider: "present" | "fallback";
  readonly policy: string;
  readonly workers: { readonly ready: number; readonly total: number };
  /** Replicas by how far the index can be trusted for them. */
  readonly index: Readonly<Record<string, number>>;
}

/**
 * Where it is decided who serves a request: the port between the proxies, which hold connections, and the one router, which
 * holds all that is known of the fleet. It may be an object of this process or a socket away, so every answer is a call
 * back on the request, before the verb returns or later.
 */
export interface Decider {
  /** Asks for a place; `place`, `shed` or nothing for a while answers. Ids are the proxy's and unique in it. */
  offer(request: OfferedRequest, decided: DecidedRequest): void;
  /** The request went out to its worker. */
  sent(id: string): void;
  firstToken(id: string): void;
  grew(id: string, tokens: number): void;
  /** An attempt has ended; `over` answers if it was the last, `place` or `shed` if not. */
  ended(id: string, end: AttemptEnd): void;
  /** A request that the proxy itself turned away, which counts as offered and shed; for whose key, if for its sake. */
  refused(reason: string, key?: string): void;
  /** A request that was not understood, by code; it does not count as offered. */
  invalid(code: string): void;
  models(): readonly string[];
  /** Those of them that are adapters: what is cached of a prompt for one is of no use to another. */
  adapters(): readonly string[];
  readiness(): Readiness;
  /** All metrics in Prometheus' text form. */
  metricsText(): Promise<string>;
  close(): Promise<void>;
}
