import type { Account } from "./accounts.ts";
import type { ShedReason } from "./admission/types.ts";
import type { Nanoseconds } from "./clock.ts";

/** What a target cannot tell is this, never 0. */
export type Unavailable = "unavailable";

export const UNAVAILABLE: Unavailable = "unavailable";

/** What became of one offered request, whoever drove it: simulated fleet, local fleet or load against a URL. */
export interface RequestRecord {
  /** Unique in a run and equal in every arm, so that arms can be compared request by request. */
  readonly id: string;
  /** Groups the turns of one conversation. */
  readonly session: string | undefined;
  /** 0 is the first turn. */
  readonly turn: number;
  /** When the schedule, or the closed loop, wanted it sent. */
  readonly intendedNs: Nanoseconds;
  /** When it was written to the wire; undefined if it never was. */
  readonly sentNs: Nanoseconds | undefined;
  /**
   * When it went to the worker it ended on, after any wait in the router; undefined if it never did or nobody can tell.
   */
  readonly placedNs: Nanoseconds | undefined;
  /** First byte of the response, headers and empty events included. */
  readonly firstByteNs: Nanoseconds | undefined;
  /** First event with content that is not empty. */
  readonly firstContentNs: Nanoseconds | undefined;
  /** Last event with content; the end of the stream may come later. */
  readonly lastContentNs: Nanoseconds | undefined;
  /** When the account was settled; undefined only for `unfinished`. */
  readonly endNs: Nanoseconds | undefined;
  readonly promptTokens: number;
  /** Tokens received, also of a request that did not complete. */
  readonly outputTokens: number;
  /** Prompt tokens that the router expected in the worker's cache when it placed the request. */
  readonly predictedCachedTokens: number | Unavailable;
  /** Prompt tokens that the engine did find in its cache. */
  readonly observedCachedTokens: number | Unavailable;
  /** The worker it ended on; undefined if it was never placed, `unavailable` if the target does not say. */
  readonly worker: string | undefined;
  /** How often a worker was tried. */
  readonly attempts: number;
  readonly account: Account;
  readonly shedReason: ShedReason | undefined;
  /** What went wrong, for grouping: not for requests that completed or were shed with a reason. */
  readonly failure: RequestFailure | undefined;
  /** Id of the last decision record. */
  readonly decision: string | undefined;
  readonly tokenTimes: TokenTimes | undefined;
}

export interface RequestFailure {
  /** HTTP status, where there was one. */
  readonly status: number | undefined;
  readonly message: string;
}

/**
 * When content arrived, kept compactly: a request of 350 tokens on the twin has some tens of runs.
 *
 * - `runs`: engine steps in runs of `RUN_NUMBERS` each: `startNs, remainderPs, firstStepPs, growthPs, steps`. The chunk
 *   of step i (from 1) arrives at `startNs + floor((remainderPs + i * firstStepPs + growthPs * i * (i - 1) / 2) /
 *   1000)`. Steps are in picoseconds because stepping and jumping over steps must agree. The array may be a view into a
 *   longer log that all requests of a batch share.
 * - `chunks`: the arrival of each chunk, as a client sees it.
 * - `gaps`: only how often which gap occurred, as it is kept in files; the buckets are those of `DurationHistogram`.
 */
export type TokenTimes =
  | { readonly form: "runs"; readonly runs: Float64Array }
  | { readonly form: "chunks"; readonly timesNs: Float64Array }
  | { readonly form: "gaps"; readonly gaps: GapCounts };

/** Numbers per run in the `runs` form. */
export const RUN_NUMBERS = 5;

/** A request's gaps without their order. */
export interface GapCounts {
  /** Bucket and count in turn, buckets ascending. */
  readonly bucketCounts: readonly number[];
  readonly sumNs: number;
  readonly minNs: number;
  readonly maxNs: number;
}

/** What every record must be given; the rest starts as unknown. */
export type RequestRecordFields = Pick<RequestRecord, "id" | "intendedNs" | "promptTokens" | "account"> &
  Partial<RequestRecord>;

/** A record with every field present, so that all records have one shape in memory. */
export function requestRecord(fields: RequestRecordFields): RequestRecord {
  return {
    id: fields.id,
    session: fields.session,
    turn: fields.turn ?? 0,
    intendedNs: fields.intendedNs,
    sentNs: fields.sentNs,
    placedNs: fields.placedNs,
    firstByteNs: fields.firstByteNs,
    firstContentNs: fields.firstContentNs,
    lastContentNs: fields.lastContentNs,
    endNs: fields.endNs,
    promptTokens: fields.promptTokens,
    outputTokens: fields.outputTokens ?? 0,
    predictedCachedTokens: fields.predictedCachedTokens ?? UNAVAILABLE,
    observedCachedTokens: fields.observedCachedTokens ?? UNAVAILABLE,
    worker: fields.worker,
    attempts: fields.attempts ?? 0,
    account: fields.account,
    shedReason: fields.shedReason,
    failure: fields.failure,
    decision: fields.decision,
    tokenTimes: fields.tokenTimes,
  };
}
