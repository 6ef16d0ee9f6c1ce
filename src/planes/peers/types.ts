/**
 * The peer plane's port: how gateways before one fleet hear of each other's requests. Best effort: a message that is lost is not
 * sent again, because the next one says it too, or it no longer matters.
 */
import type { PeerMessage } from "../../wire/peer-message.ts";

export interface PeerListener {
  /** Others can be reached from now on, or can be again. */
  reached(): void;
  /** Another gateway has said something; never this one itself. */
  heard(message: PeerMessage): void;
}

/** What has gone over a plane so far. */
export interface PeerPlaneCounts {
  readonly sent: number;
  /** Messages that were too large to be sent in any form, or came too late to be. */
  readonly dropped: number;
  readonly heard: number;
  /** Messages that could not be understood. */
  readonly malformed: number;
  /** Messages of gateways that speak another version. */
  readonly otherVersion: number;
}

/** One gateway's way to all others. */
export interface PeerPlane {
  readonly counts: PeerPlaneCounts;
  /** Tells all others; nobody may be there to hear it. */
  tell(message: PeerMessage): void;
  /** Starts to hear the others. */
  listen(listener: PeerListener): void;
  close(): Promise<void>;
}
