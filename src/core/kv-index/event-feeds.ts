import type { Nanoseconds } from "../clock.ts";
import type { Replay, Resync } from "../effects.ts";
import { EventFeed, type FeedCounts, type FeedRequest, type FeedState } from "./event-feed.ts";
import type { KvIndex } from "./kv-index.ts";
import type { FeedCapabilities, KvEvent, ReplicaSnapshot } from "./types.ts";

/** The feeds of all replicas that have one, each ending in the same index; what they ask for comes out as effects. */
export class EventFeeds {
  readonly #index: KvIndex;
  readonly #feeds = new Map<number, EventFeed>();

  constructor(index: KvIndex) {
    this.#index = index;
  }

  add(replica: number, capabilities: FeedCapabilities): void {
    const index = this.#index;
    const feed = new EventFeed(capabilities, {
      apply: (event) => {
        index.apply(replica, event.tier, event);
        if (event.more !== undefined) for (const change of event.more) index.apply(replica, change.tier, change);
      },
      clear: () => index.clearReplica(replica),
      restore: (snapshot) => index.restore(replica, snapshot.runs),
    });
    this.#feeds.set(replica, feed);
  }

  remove(replica: number): void {
    this.#feeds.delete(replica);
  }

  /** Whether a replica tells what it caches; the cache of one that does not is guessed. */
  has(replica: number): boolean {
    return this.#feeds.has(replica);
  }

  state(replica: number): FeedState | "approximate" {
    return this.#feeds.get(replica)?.state ?? "approximate";
  }

  /** What has happened to a replica's events; undefined if it has none. */
  counts(replica: number): FeedCounts | undefined {
    return this.#feeds.get(replica)?.counts;
  }

  accept(replica: number, event: KvEvent, nowNs: Nanoseconds): (Replay | Resync)[] {
    return asEffects(replica, this.#feeds.get(replica)?.accept(event, nowNs));
  }

  replayUnavailable(replica: number, nowNs: Nanoseconds): (Replay | Resync)[] {
    return asEffects(replica, this.#feeds.get(replica)?.replayUnavailable(nowNs));
  }

  restore(replica: number, snapshot: ReplicaSnapshot, nowNs: Nanoseconds): (Replay | Resync)[] {
    return asEffects(replica, this.#feeds.get(replica)?.restore(snapshot, nowNs));
  }

  tick(nowNs: Nanoseconds): (Replay | Resync)[] {
    const effects: (Replay | Resync)[] = [];
    for (const [replica, feed] of this.#feeds) {
      const request = feed.tick(nowNs);
      if (request !== undefined) effects.push({ ...request, replica });
    }
    return effects;
  }
}

function asEffects(replica: number, request: FeedRequest | undefined): (Replay | Resync)[] {
  return request === undefined ? [] : [{ ...request, replica }];
}
