import type { KvEvent } from "../../../core/kv-index/types.ts";

type Numbered = Pick<KvEvent, "incarnation" | "eventId">;

/** The last events of one incarnation, in whatever form they are sent again. */
export class PastEvents<T extends Numbered = KvEvent> {
  readonly depth: number;
  #events: T[] = [];
  /** Where the kept ones start; those before are dropped a whole lot at a time. */
  #from = 0;

  constructor(depth: number) {
    this.depth = depth;
  }

  get last(): T | undefined {
    return this.#events.at(-1);
  }

  /** Id of the oldest event that is kept. */
  get firstEventId(): number | undefined {
    return this.#from < this.#events.length ? this.#events[this.#from].eventId : undefined;
  }

  /** Keeps an event; one of another incarnation makes all others history. */
  add(event: T): void {
    if (event.incarnation !== this.last?.incarnation) this.clear();
    this.#events.push(event);
    if (this.#events.length - this.#from <= this.depth) return;
    this.#from++;
    if (this.#from < this.depth) return;
    this.#events = this.#events.slice(this.#from);
    this.#from = 0;
  }

  clear(): void {
    this.#events = [];
    this.#from = 0;
  }

  /** The events from one id to another, or undefined if some of them are not kept. */
  range(fromEventId: number, toEventId: number): readonly T[] | undefined {
    const first = this.firstEventId;
    const last = this.last?.eventId;
    if (first === undefined || last === undefined || fromEventId < first || toEventId > last) return undefined;
    const start = this.#from + fromEventId - first;
    return this.#events.slice(start, start + toEventId - fromEventId + 1);
  }
}
