/**
 * The event plane's port: how what a worker says of its KV cache and its load reaches whoever routes to it.
 *
 * A plane carries events and does not judge them. Order, gaps and restarts are the business of the router's event feeds,
 * which is why an adapter may deliver late, twice or not at all, as long as it says what it can do about losses.
 */
import type { FeedCapabilities, KvEvent, ReplicaSnapshot } from "../../core/kv-index/types.ts";
import type { ReportedLoad } from "../../core/load/load-description.ts";
import type { StoredContent } from "../../wire/kv-events/engine-encoder.ts";

/** Takes what a replica's source sends; called one after another, never from inside a call to the subscription. */
export interface EventListener {
  event(event: KvEvent): void;
  /** The whole state: asked for, or sent because a reconnection found that events are lost or that the worker is another. */
  snapshot(snapshot: ReplicaSnapshot): void;
  /** The events asked for are gone. */
  replayUnavailable(): void;
  /** What the engine says of its load; not every source does. */
  load(load: ReportedLoad): void;
  /** How old a message was when it came, by the engine's own clock; not every wire tells. */
  lag?(ageMs: number): void;
  /** All that `catchUp` asked for has come. */
  caughtUp(): void;
  /** Why what it sends is of no use, for people to read; told once. */
  problem?(message: string): void;
}

/** One replica's events, until closed. */
export interface EventSubscription {
  /** Asks for a range of past events; they come as events, or `replayUnavailable` does. */
  replay(fromEventId: number, toEventId: number): void;
  /** Asks for the whole state; it comes as a snapshot. */
  resync(): void;
  /**
   * Asks for all that the source can tell of its past: its state where it can send that, else the events that it keeps. It is
   * asked until it answers; then comes `caughtUp`.
   */
  catchUp(): void;
  close(): Promise<void>;
}

/** Where a replica's events are to be had. */
export interface EventAddress {
  /** The worker's own URL for HTTP, the endpoint that publishes (`tcp://host:5557`) for ZMQ. */
  readonly url: string;
  /** The endpoint that sends events again, where it is another. */
  readonly replayUrl?: string | undefined;
  /** Only messages under this topic. */
  readonly topic?: string | undefined;
  /** Rank of the replica inside its worker; each publishes on a port of its own, counted from the first one's. */
  readonly dpRank?: number | undefined;
}

/** What has come over a plane so far. */
export interface EventPlaneCounts {
  readonly events: number;
  /** Events that could not be understood. */
  readonly undecodable: number;
  /** Events left out on purpose, such as those of another block size. */
  readonly ignored: number;
  /** Connections made again after they were lost. */
  readonly reconnects: number;
}

/** Where events come from. */
export interface EventPlane {
  /** What sources on this plane can do when events are lost. */
  readonly capabilities: FeedCapabilities;
  readonly counts: EventPlaneCounts;
  /** Listens to a replica by its name; events from before must be asked for. Inside one process no address is needed. */
  subscribe(replica: string, listener: EventListener, address?: EventAddress): EventSubscription;
  close(): Promise<void>;
}

/** What a worker tells of its cache: each change as it happens, and all of it when asked. */
export interface EventSource {
  snapshot(): ReplicaSnapshot;
}

/** Where a worker puts its events. */
export interface EventPublisher {
  /** `content` is what stored blocks consist of, for wires on which subscribers hash for themselves. */
  publish(event: KvEvent, content?: StoredContent): void;
  /** Reports the engine's load, where the wire carries it. */
  load(load: ReportedLoad): void;
  close(): Promise<void>;
}
