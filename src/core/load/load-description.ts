import type { Nanoseconds } from "../clock.ts";
import type { PrefillWork } from "./prefill-ledger.ts";

/** What an engine says of itself: scraped from its metrics or carried by its events. */
export interface ReportedLoad {
  /** Requests in the engine's batch. */
  readonly running: number;
  /** Requests in the engine's own queue. */
  readonly waiting: number;
  /** Share of the device KV pool in use, 0 to 1. */
  readonly kvUsage: number;
  readonly batchSlots?: number | undefined;
  /** The pool, in blocks of `blockTokens`, or of the router's own where the engine does not say. */
  readonly kvBlocks?: number | undefined;
  readonly blockTokens?: number | undefined;
}

/** What the router itself believes, as the columns have it. */
export interface ModelledLoad {
  readonly inFlight: number;
  readonly decoding: number;
  readonly pendingPrefillTokens: number;
  readonly contextTokens: number;
  readonly activeBlocks: number;
}

/** One replica's load from both sides, so that a reader can see where the model and the engine disagree. */
export interface LoadDescription {
  readonly replica: number;
  readonly modelled: ModelledLoad;
  /** Capacities in force; 0 is unknown. */
  readonly batchSlots: number;
  readonly kvBlocks: number;
  readonly stepTokens: number;
  /** The engine's last report and when it came; undefined if there was none. */
  readonly reported: ReportedLoad | undefined;
  readonly reportedNs: Nanoseconds | undefined;
}

/** What the first token of a request released. */
export interface FirstToken {
  readonly replica: number;
  readonly promptTokens: number;
  /** Prefill tokens that were reserved and are now known to be done. */
  readonly prefillTokens: number;
  readonly sincePlacedNs: Nanoseconds;
  /** What the replica computed in that time, this prompt included. */
  readonly meanwhile: PrefillWork;
}

/** One step of a request's output. */
export interface Growth {
  readonly replica: number;
  readonly tokens: number;
  /** Time since the previous token signal; 0 where this was the first. */
  readonly sinceLastNs: Nanoseconds;
  /** Prompts of others that the replica computed in that time. */
  readonly meanwhile: PrefillWork;
  /** Set where no first-token signal came before, so that this growth was it. */
  readonly firstToken: FirstToken | undefined;
}

/** The whole of a reservation, once it is over. */
export interface EndedReservation {
  readonly replica: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly placedNs: Nanoseconds;
  /** Undefined if the request ended before its first token. */
  readonly firstTokenNs?: Nanoseconds | undefined;
}
