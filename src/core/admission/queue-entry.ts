import type { Nanoseconds } from "../clock.ts";

/** Whose patience ended: the client's or the queue's. */
export type ExpiryReason = "deadline" | "queue-timeout";

/** One waiting request, as the router sees it. */
export interface QueueEntry<T> {
  readonly id: string;
  readonly item: T;
  readonly priority: number;
  readonly queuedNs: Nanoseconds;
  readonly deadlineNs: Nanoseconds | undefined;
  /** When it stops waiting: at its deadline or after the longest wait, whichever comes first. */
  readonly expiresNs: Nanoseconds;
  /** Which of the two that is. */
  readonly expiryReason: ExpiryReason;
}

/** The same with its places in the queue's structures, so that it can leave all of them without a search. */
export interface QueueNode<T> extends QueueEntry<T> {
  /** Counts pushes; orders what else is equal. */
  readonly sequence: number;
  previous: QueueNode<T> | undefined;
  next: QueueNode<T> | undefined;
  heapIndex: number;
}
