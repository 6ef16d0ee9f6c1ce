import { NS_PER_SECOND, type Nanoseconds } from "../clock.ts";
import type { FeedCapabilities, KvChange, KvEvent, ReplicaSnapshot } from "./types.ts";

/**
 * How far the index can be trusted for a replica: `empty` has heard nothing, `live` has heard everything, `stale` serves
 * the old view while lost events are being sent again, `resyncing` while the whole state is, and `partial` has lost events for
 * good: what it knows is true as far as anybody can tell, but not all there is.
 */
export type FeedState = "empty" | "live" | "stale" | "resyncing" | "partial";

/** What a feed asks of its source. */
export type FeedRequest =
  | { readonly kind: "replay"; readonly fromEventId: number; readonly toEventId: number }
  | { readonly kind: "resync" };

/** Where the events of a feed go once they are in order. */
export interface FeedSink {
  /** The event's own change, then those that came with it. */
  apply(event: KvEvent): void;
  clear(): void;
  restore(snapshot: ReplicaSnapshot): void;
}

export interface FeedCounts {
  readonly applied: number;
  readonly duplicates: number;
  readonly gaps: number;
  readonly resyncs: number;
  readonly restarts: number;
}

/** Events that may wait behind a gap; a longer one is cheaper to resync than to hold back. */
const MAX_WAITING = 1024;
/** An answer that has not come by then is asked for again; a range three times, the state until it comes. */
const ANSWER_NS: number = 2 * NS_PER_SECOND;
const MAX_REPLAY_REQUESTS = 3;
const PAST_INCARNATIONS = 8;

/**
 * Puts the events of one replica in order. Ids are consecutive within an incarnation, so a missing one is noticed at the
 * next: the feed then asks for the range, keeps the old view serving and holds later events back; only when the range
 * cannot be had does it ask for the whole state, and only without that does it go on with what it has, and says so.
 */
export class EventFeed {
  readonly #capabilities: FeedCapabilities;
  readonly #sink: FeedSink;
  readonly #waiting = new Map<number, KvEvent>();
  readonly #past: string[] = [];
  #state: FeedState = "empty";
  #incarnation: string | undefined;
  #lastEventId = -1;
  /** Events were lost that nobody can send again, and nothing has made up for them since. */
  #hasLost = false;
  readonly #tiers = new Set<string>();
  #askedNs: Nanoseconds = 0;
  #replayRequests = 0;
  #askedToEventId = -1;
  #applied = 0;
  #duplicates = 0;
  #gaps = 0;
  #resyncs = 0;
  #restarts = 0;

  constructor(capabilities: FeedCapabilities, sink: FeedSink) {
    this.#capabilities = capabilities;
    this.#sink = sink;
  }

  get state(): FeedState {
    return this.#state;
  }

  get lastEventId(): number {
    return this.#lastEventId;
  }

  get incarnation(): string | undefined {
    return this.#incarnation;
  }

  get counts(): FeedCounts {
    return {
      applied: this.#applied,
      duplicates: this.#duplicates,
      gaps: this.#gaps,
      resyncs: this.#resyncs,
      restarts: this.#restarts,
    };
  }

  /** Takes the next event as it arrives, in whatever order. */
  accept(event: KvEvent, nowNs: Nanoseconds): FeedRequest | undefined {
    if (event.incarnation !== this.#incarnation) {
      // A straggler of an earlier life must not clear what the present one has built up.
      if (this.#past.includes(event.incarnation)) {
        this.#duplicates++;
        return undefined;
      }
      this.#begin(event.incarnation);
    }
    const isWaiting = this.#waiting.size > 0 && this.#waiting.has(event.eventId);
    if (event.eventId <= this.#lastEventId || isWaiting) {
      this.#duplicates++;
      return undefined;
    }
    if (event.eventId === this.#lastEventId + 1 && this.#state !== "resyncing") {
      this.#apply(event);
      return this.#applyWaiting(nowNs);
    }
    this.#waiting.set(event.eventId, event);
    if (this.#state === "resyncing") {
      // The state to come most likely covers the oldest; if not, they are missed then, and asked for.
      if (this.#waiting.size > MAX_WAITING) this.#waiting.delete(Math.min(...this.#waiting.keys()));
      return undefined;
    }
    if (this.#state !== "stale") return this.#gap(nowNs);
    return this.#waiting.size > MAX_WAITING ? this.#withoutReplay(nowNs) : undefined;
  }

  /** The source cannot send a range again: it is older than what it keeps. */
  replayUnavailable(nowNs: Nanoseconds): FeedRequest | undefined {
    return this.#state === "stale" ? this.#withoutReplay(nowNs) : undefined;
  }

  /** The source has sent its whole state; events after it go on top. */
  restore(snapshot: ReplicaSnapshot, nowNs: Nanoseconds): FeedRequest | undefined {
    if (snapshot.incarnation !== this.#incarnation) {
      if (this.#past.includes(snapshot.incarnation)) return undefined;
      this.#begin(snapshot.incarnation);
    } else if (this.#state !== "resyncing" && snapshot.lastEventId <= this.#lastEventId) {
      return undefined;
    }
    this.#sink.restore(snapshot);
    this.#lastEventId = snapshot.lastEventId;
    this.#hasLost = false;
    this.#state = "live";
    for (const id of this.#waiting.keys()) if (id <= snapshot.lastEventId) this.#waiting.delete(id);
    return this.#applyWaiting(nowNs);
  }

  /** Asks again for what has not come, and gives up on a range that never does. */
  tick(nowNs: Nanoseconds): FeedRequest | undefined {
    if (nowNs - this.#askedNs < ANSWER_NS) return undefined;
    if (this.#state === "stale") {
      return this.#replayRequests < MAX_REPLAY_REQUESTS ? this.#askReplay(nowNs) : this.#withoutReplay(nowNs);
    }
    if (this.#state !== "resyncing") return undefined;
    this.#askedNs = nowNs;
    return { kind: "resync" };
  }

  #begin(incarnation: string): void {
    if (this.#incarnation !== undefined) {
      this.#past.push(this.#incarnation);
      if (this.#past.length > PAST_INCARNATIONS) this.#past.shift();
      this.#restarts++;
      this.#sink.clear();
    }
    this.#incarnation = incarnation;
    this.#lastEventId = -1;
    this.#waiting.clear();
    this.#hasLost = false;
    this.#tiers.clear();
    this.#state = "empty";
  }

  #apply(event: KvEvent): void {
    this.#sink.apply(event);
    this.#applied++;
    this.#lastEventId = event.eventId;
    this.#noteChange(event);
    if (event.more !== undefined) for (const change of event.more) this.#noteChange(change);
    if (this.#state === "empty" || this.#state === "partial") this.#state = this.#settled();
  }

  #noteChange(change: KvChange): void {
    this.#tiers.add(change.tier);
    // After a clearing the state is known again, whatever was lost before it: of the one tier that is in use.
    if (change.kind === "cleared" && this.#tiers.size === 1) this.#hasLost = false;
  }

  #settled(): FeedState {
    return this.#hasLost ? "partial" : "live";
  }

  #applyWaiting(nowNs: Nanoseconds): FeedRequest | undefined {
    for (let next = this.#takeWaiting(); next !== undefined; next = this.#takeWaiting()) this.#apply(next);
    if (this.#waiting.size > 0) {
      // The rest of the range asked for is on its way.
      const isAskedFor = this.#state === "stale" && this.#lastEventId < this.#askedToEventId;
      return isAskedFor ? undefined : this.#gap(nowNs);
    }
    if (this.#state === "stale") this.#state = this.#settled();
    return undefined;
  }

  #takeWaiting(): KvEvent | undefined {
    if (this.#waiting.size === 0) return undefined;
    const next = this.#waiting.get(this.#lastEventId + 1);
    if (next !== undefined) this.#waiting.delete(next.eventId);
    return next;
  }

  #gap(nowNs: Nanoseconds): FeedRequest | undefined {
    this.#gaps++;
    this.#replayRequests = 0;
    // A feed joined in mid-stream would need its whole history; the state itself is shorter, where it can be had.
    if (this.#state === "empty" && this.#capabilities.snapshot) return this.#withoutReplay(nowNs);
    return this.#askReplay(nowNs);
  }

  #askReplay(nowNs: Nanoseconds): FeedRequest | undefined {
    const fromEventId = this.#lastEventId + 1;
    const toEventId = Math.min(...this.#waiting.keys()) - 1;
    if (toEventId - fromEventId + 1 > this.#capabilities.replayDepth) return this.#withoutReplay(nowNs);
    this.#state = "stale";
    this.#replayRequests++;
    this.#askedNs = nowNs;
    this.#askedToEventId = toEventId;
    return { kind: "replay", fromEventId, toEventId };
  }

  #withoutReplay(nowNs: Nanoseconds): FeedRequest | undefined {
    if (this.#capabilities.snapshot) {
      this.#state = "resyncing";
      this.#resyncs++;
      this.#askedNs = nowNs;
      return { kind: "resync" };
    }
    for (const event of [...this.#waiting.values()].sort((a, b) => a.eventId - b.eventId)) {
      if (event.eventId > this.#lastEventId + 1) this.#hasLost = true;
      this.#apply(event);
    }
    this.#waiting.clear();
    this.#state = this.#settled();
    return undefined;
  }
}
