import type { ShedReason } from "../admission/types.ts";
import type { Nanoseconds } from "../clock.ts";
import type { FeedState } from "../kv-index/event-feed.ts";
import type { PolicyParameters } from "../policy/types.ts";

/** Replicas of the fleet that were no candidates, by the first filter that removed each. */
export interface FilteredReplicas {
  /** Draining or down. */
  readonly notReady: readonly string[];
  /** Tried before by the same request. */
  readonly tried: readonly string[];
  /** At or above a watermark of admission. */
  readonly busy: readonly string[];
}

/** One replica as the policy saw it. */
export interface RecordedCandidate {
  readonly replica: string;
  readonly cachedBlocks: number;
  readonly confirmedBlocks: number;
  readonly hostBlocks: number;
  readonly diskBlocks: number;
  readonly activePrefixBlocks: number;
  readonly inFlight: number;
  readonly decoding: number;
  readonly pendingPrefillTokens: number;
  readonly contextTokens: number;
  readonly activeBlocks: number;
  readonly batchSlots: number;
  readonly kvBlocks: number;
  readonly stepTokens: number;
  readonly lastChosen: number;
  readonly newBlocks: number;
}

/**
 * One attempt to place one request: what was known, what was chosen, and, after the fact, whether the prediction held. The
 * costs are not in it: the policy is a pure function of the candidates and recomputes them when somebody asks.
 */
export interface DecisionRecord {
  readonly decision: number;
  readonly request: string;
  readonly attempt: number;
  /** The decision whose stream was cut and is continued by this one; null where the answer begins here. */
  readonly continues: number | null;
  readonly decidedNs: Nanoseconds;
  /** How long the request had waited in the router's queue. */
  readonly queueWaitNs: Nanoseconds;
  readonly policy: string;
  readonly parameters: PolicyParameters;

  readonly promptTokens: number;
  readonly promptBlocks: number;
  readonly blockTokens: number;
  readonly expectedOutputTokens: number;
  readonly sessionKey: number;
  readonly chance: number;
  readonly mayHold: boolean;

  /** Null for a refusal. */
  readonly chosen: string | null;
  readonly runnerUp: string | null;
  /** How much more the runner-up would have cost, in the policy's unit. */
  readonly margin: number;
  /** How many candidates shared the lowest cost; above 1, the tie-break decided. */
  readonly tied: number;
  readonly candidateCount: number;
  readonly filtered: FilteredReplicas;
  /** How far the index could be trusted for the chosen replica. */
  readonly indexState: FeedState | "approximate" | null;
  /** Why the request was turned away; null where it was placed. */
  readonly refusal: ShedReason | null;

  /** What the policy had learned, where the choice depended on it and the record is full. */
  readonly learned: readonly number[] | undefined;

  readonly predictedCachedTokens: number;
  /** What the engine reported; undefined while unknown, or where it never says. */
  readonly observedCachedTokens: number | undefined;
  /** From the decision to the first token; undefined while there is none. */
  readonly firstTokenNs: Nanoseconds | undefined;

  /** All candidates as they were; undefined for a summary, or when newer records took their place. */
  readonly candidates: readonly RecordedCandidate[] | undefined;
}
