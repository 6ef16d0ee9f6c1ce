import type { Nanoseconds } from "../core/clock.ts";

interface Entry<Item> {
  readonly atNs: Nanoseconds;
  readonly order: number;
  readonly item: Item;
}

/** Things by the time at which they are due; those of one time in the order in which they were added. */
export class DueHeap<Item> {
  readonly #entries: Entry<Item>[] = [];
  #added = 0;

  get size(): number {
    return this.#entries.length;
  }

  /** When the first is due; Infinity where there is none. */
  get firstNs(): Nanoseconds {
    return this.#entries.length === 0 ? Infinity : this.#entries[0].atNs;
  }

  add(atNs: Nanoseconds, item: Item): void {
    const entries = this.#entries;
    const entry = { atNs, order: this.#added++, item };
    let at = entries.length;
    entries.push(entry);
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (!isBefore(entry, entries[parent])) break;
      entries[at] = entries[parent];
      at = parent;
    }
    entries[at] = entry;
  }

  /** Removes and returns the first; undefined where there is none. */
  take(): Item | undefined {
    const entries = this.#entries;
    const first = entries[0];
    const last = entries.pop();
    if (last === undefined) return undefined;
    if (entries.length === 0) return first.item;
    let at = 0;
    for (let child = 1; child < entries.length; child = 2 * at + 1) {
      if (child + 1 < entries.length && isBefore(entries[child + 1], entries[child])) child++;
      if (!isBefore(entries[child], last)) break;
      entries[at] = entries[child];
      at = child;
    }
    entries[at] = last;
    return first.item;
  }
}

function isBefore<Item>(a: Entry<Item>, b: Entry<Item>): boolean {
  return a.atNs < b.atNs || (a.atNs === b.atNs && a.order < b.order);
}
