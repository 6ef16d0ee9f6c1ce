import type { FeedCapabilities, KvEvent } from "../../core/kv-index/types.ts";
import type { EventListener, EventPlane, EventPublisher, EventSource, EventSubscription } from "./types.ts";

export interface MemoryEventPlaneOptions {
  /** Past events kept for each replica. */
  readonly replayDepth?: number;
}

interface Channel {
  readonly listeners: Set<EventListener>;
  readonly past: KvEvent[];
  source: EventSource | undefined;
}

/**
 * Carries events inside one process. Deliveries wait for the end of the current task, in order: publishing never runs a
 * listener's code in the middle of an engine's step.
 */
export class MemoryEventPlane implements EventPlane {
  readonly capabilities: FeedCapabilities;
  readonly #channels = new Map<string, Channel>();
  #isClosed = false;

  constructor(options: MemoryEventPlaneOptions = {}) {
    this.capabilities = { replayDepth: options.replayDepth ?? 1024, snapshot: true };
  }

  /** The publisher for a replica's events; a new source under the same name is a restart of the replica. */
  publisher(replica: string, source: EventSource): EventPublisher {
    const channel = this.#channel(replica);
    channel.source = source;
    channel.past.length = 0;
    return {
      publish: (event) => {
        channel.past.push(event);
        if (channel.past.length > this.capabilities.replayDepth) channel.past.shift();
        for (const listener of channel.listeners) this.#deliver(channel, listener, () => listener.event(event));
      },
    };
  }

  subscribe(replica: string, listener: EventListener): EventSubscription {
    const channel = this.#channel(replica);
    channel.listeners.add(listener);
    return {
      replay: (fromEventId, toEventId) => {
        const range = channel.past.filter(({ eventId }) => eventId >= fromEventId && eventId <= toEventId);
        const isWhole = range.length === toEventId - fromEventId + 1;
        this.#deliver(channel, listener, () => {
          if (!isWhole) listener.replayUnavailable();
          else for (const event of range) listener.event(event);
        });
      },
      resync: () => {
        const snapshot = channel.source?.snapshot();
        if (snapshot !== undefined) this.#deliver(channel, listener, () => listener.snapshot(snapshot));
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

  #deliver(channel: Channel, listener: EventListener, delivery: () => void): void {
    queueMicrotask(() => {
      if (!this.#isClosed && channel.listeners.has(listener)) delivery();
    });
  }

  #channel(replica: string): Channel {
    let channel = this.#channels.get(replica);
    if (channel === undefined) {
      channel = { listeners: new Set(), past: [], source: undefined };
      this.#channels.set(replica, channel);
    }
    return channel;
  }
}
