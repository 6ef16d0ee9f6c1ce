/**
 * The event plane's port: how what a worker says of its KV cache reaches whoever routes to it.
 *
 * A plane carries events and does not judge them. Order, gaps and restarts are the business of the router's event feeds,
 * which is why an adapter may deliver late, twice or not at all, as long as it says what it can do about losses.
 */
import type { FeedCapabilities, KvEvent, ReplicaSnapshot } from "../../core/kv-index/types.ts";

/** Takes what a replica's source sends; called one after another, never from inside a call to the subscription. */
export interface EventListener {
  event(event: KvEvent): void;
  /** The whole state that was asked for. */
  snapshot(snapshot: ReplicaSnapshot): void;
  /** The events asked for are gone. */
  replayUnavailable(): void;
}

/** One replica's events, until closed. */
export interface EventSubscription {
  /** Asks for a range of past events; they come as events, or `replayUnavailable` does. */
  replay(fromEventId: number, toEventId: number): void;
  /** Asks for the whole state; it comes as a snapshot. */
  resync(): void;
  close(): Promise<void>;
}

/** Where events come from. */
export interface EventPlane {
  /** What sources on this plane can do when events are lost. */
  readonly capabilities: FeedCapabilities;
  /** Listens to a replica by its name; events from before must be asked for. */
  subscribe(replica: string, listener: EventListener): EventSubscription;
  close(): Promise<void>;
}

/** What a worker tells of its cache: each change as it happens, and all of it when asked. */
export interface EventSource {
  snapshot(): ReplicaSnapshot;
}

/** Where a worker puts its events. */
export interface EventPublisher {
  publish(event: KvEvent): void;
}
