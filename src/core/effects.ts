import type { ShedReason } from "./admission/types.ts";

/** What the router wants its driver to do. The driver carries effects out in order and reports back what came of them. */
export type Effect = Place | Hold | Shed | Replay | Resync;

/** Send the request to this replica. A retry is a placement with an `attempt` above 1. */
export interface Place {
  readonly kind: "place";
  readonly request: string;
  readonly replica: number;
  /** Number of the decision, for `x-warmpath-decision` and for looking up its record. */
  readonly decision: number;
  readonly attempt: number;
  /** Prompt tokens the replica is predicted to have cached. */
  readonly predictedCachedTokens: number;
}

/** Keep the request waiting; a later call places or sheds it. */
export interface Hold {
  readonly kind: "hold";
  readonly request: string;
}

/** Answer the request with a refusal; it has ended. */
export interface Shed {
  readonly kind: "shed";
  readonly request: string;
  /** Number of the decision, like that of a placement. */
  readonly decision: number;
  readonly reason: ShedReason;
}

/** Ask the replica's event source to send a range of events again. */
export interface Replay {
  readonly kind: "replay";
  readonly replica: number;
  readonly fromEventId: number;
  readonly toEventId: number;
}

/** Ask the replica's event source for its whole state. */
export interface Resync {
  readonly kind: "resync";
  readonly replica: number;
}
