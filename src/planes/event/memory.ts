import type { FeedCapabilities } from "../../core/kv-index/types.ts";
import { PastEvents } from "./parts/past-events.ts";
import type {
  EventListener,
  EventPlane,
  EventPlaneCounts,
  EventPublisher,
  EventSource,
  EventSubscription,
} from "./types.ts";

export interface MemoryEventPlaneOptions {
  /** Past events kept for each replica. */
  readonly replayDepth?: number;
}

interface Channel {
  readonly listeners: Set<EventListener>;
  readonly past: PastEvents;
  source: EventSource | undefined;
}

/**
 * Carries events inside one process. Deliveries wait for the end of the current task, in order: publishing never runs a
 * listener's code in the middle of an engine's step.
 */
export class MemoryEventPlane implements EventPlane {
  readonly capabilities: FeedCapabilities;
  readonly #channels = new Map<string, Channel>();
  #events = 0;
  #isClosed = false;

  constructor(options: MemoryEventPlaneOptions = {}) {
    this.capabilities = { replayDepth: options.replayDepth ?? 1024, snapshot: true };
  }

  get counts(): EventPlaneCounts {
    return { events: this.#events, undecodable: 0, ignored: 0, reconnects: 0 };
  }

  /** The publisher for a replica's events; a new source under the same name is a restart of the replica. */
  publisher(replica: string, source: EventSource): EventPublisher {
    const channel = this.#channel(replica);
    channel.source = source;
    channel.past.clear();
    return {
      publish: (event) => {
        channel.past.add(event);
        this.#deliver(channel, (listener) => {
          this.#events++;
          listener.event(event);
        });
      },
      load: (load) => this.#deliver(channel, (listener) => listener.load(load)),
      close: () => Promise.resolve(),
    };
  }

  subscribe(replica: string, listener: EventListener): EventSubscription {
    const channel = this.#channel(replica);
    channel.listeners.add(listener);
    const deliver = (delivery: () => void): void => this.#deliverTo(channel, listener, delivery);
    const resync = (): void => {
      const snapshot = channel.source?.snapshot();
      if (snapshot !== undefined) deliver(() => listener.snapshot(snapshot));
    };
    return {
      replay: (fromEventId, toEventId) => {
        const range = channel.past.range(fromEventId, toEventId);
        deliver(() => {
          if (range === undefined) listener.replayUnavailable();
          else for (const event of range) listener.event(event);
        });
      },
      resync,
      catchUp: () => {
        resync();
        deliver(() => listener.caughtUp());
      },
      close: () => {
        channel.listeners.delete(listener);
        return Promise.resolve();
      },
    };
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#channels.clear();
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #deliver(channel: Channel, delivery: (listener: EventListener) => void): void {
    for (const listener of channel.listeners) this.#deliverTo(channel, listener, () => delivery(listener));
  }

  #deliverTo(channel: Channel, listener: EventListener, delivery: () => void): void {
    queueMicrotask(() => {
      if (!this.#isClosed && channel.listeners.has(listener)) delivery();
    });
  }

  #channel(replica: string): Channel {
    let channel = this.#channels.get(replica);
    if (channel === undefined) {
      channel = { listeners: new Set(), past: new PastEvents(this.capabilities.replayDepth), source: undefined };
      this.#channels.set(replica, channel);
    }
    return channel;
  }
}
