import type { Clock, Nanoseconds } from "../core/clock.ts";
import type { EventPlane } from "../planes/event/types.ts";

/** Remembers when each replica was last heard of on an event plane. */
export class EventTimes {
  readonly #clock: Clock;
  readonly #lag: (ageMs: number) => void;
  readonly #lastNs = new Map<string, Nanoseconds>();

  /** `lag` is told how old messages were when they came, where the wire says so. */
  constructor(clock: Clock, lag: (ageMs: number) => void) {
    this.#clock = clock;
    this.#lag = lag;
  }

  /** When a replica's last event came; undefined if none has. */
  lastNs(replica: string | undefined): Nanoseconds | undefined {
    return replica === undefined ? undefined : this.#lastNs.get(replica);
  }

  /** The same plane, with the time of every event noted on its way. */
  watched(plane: EventPlane | undefined): EventPlane | undefined {
    if (plane === undefined) return undefined;
    return {
      capabilities: plane.capabilities,
      get counts() {
        return plane.counts;
      },
      subscribe: (replica, listener, address) => {
        const event: typeof listener.event = (heard) => {
          this.#lastNs.set(replica, this.#clock.nowNs());
          listener.event(heard);
        };
        const subscription = plane.subscribe(replica, { ...listener, event, lag: this.#lag }, address);
        return {
          replay: (fromEventId, toEventId) => subscription.replay(fromEventId, toEventId),
          resync: () => subscription.resync(),
          catchUp: () => subscription.catchUp(),
          close: () => {
            this.#lastNs.delete(replica);
            return subscription.close();
          },
        };
      },
      close: () => plane.close(),
    };
  }
}
