import type { KvEvent } from "../../../core/kv-index/types.ts";
import type { StreamedEvent } from "../../../wire/kv-events/json-events.ts";
import type { EventListener } from "../types.ts";

/** What all subscriptions of a plane have seen. */
export interface Tally {
  events: number;
  undecodable: number;
  reconnects: number;
}

/** One worker's events on their way to the listener: counts them, and knows how far they have come. */
export class HeardEvents {
  /** Undefined before the worker has said anything. */
  incarnation: string | undefined;
  /** The newest event heard of, of this incarnation. */
  lastEventId = -1;
  readonly #listener: EventListener;
  readonly #tally: Tally;

  constructor(listener: EventListener, tally: Tally) {
    this.#listener = listener;
    this.#tally = tally;
  }

  hear({ event, sentMs }: StreamedEvent): void {
    if (sentMs !== undefined) this.#listener.lag?.(Math.max(0, Date.now() - sentMs));
    this.deliver(event);
  }

  /** Passes an event on whose way here says nothing about its age. */
  deliver(event: KvEvent): void {
    this.#tally.events++;
    if (event.incarnation !== this.incarnation) {
      this.incarnation = event.incarnation;
      this.lastEventId = event.eventId;
    } else this.lastEventId = Math.max(this.lastEventId, event.eventId);
    this.#listener.event(event);
  }

  /** Uses what could be decoded, and counts what could not. */
  decoded<T>(value: T | undefined, use: (value: T) => void): void {
    if (value === undefined) this.#tally.undecodable++;
    else use(value);
  }
}
