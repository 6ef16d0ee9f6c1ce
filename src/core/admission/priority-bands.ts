import type { QueueNode } from "./queue-entry.ts";

/** The requests of one priority, oldest first. */
interface Band<T> {
  readonly priority: number;
  head: QueueNode<T> | undefined;
  tail: QueueNode<T> | undefined;
}

/**
 * Waiting requests in the order they are to be placed: larger priority first, first come first served within one. A list
 * per priority, the lists sorted; there are few priorities, and an emptied band goes at once, so clients that invent
 * priorities leave nothing behind.
 */
export class PriorityBands<T> {
  readonly #bands: Band<T>[] = [];

  get first(): QueueNode<T> | undefined {
    return this.#bands[0]?.head;
  }

  /** The youngest of the lowest priority. */
  get last(): QueueNode<T> | undefined {
    return this.#bands.at(-1)?.tail;
  }

  append(node: QueueNode<T>): void {
    const index = this.#find(node.priority);
    let band: Band<T> | undefined = this.#bands[index];
    if (band === undefined || band.priority !== node.priority) {
      band = { priority: node.priority, head: undefined, tail: undefined };
      this.#bands.splice(index, 0, band);
    }
    node.previous = band.tail;
    if (band.tail === undefined) band.head = node;
    else band.tail.next = node;
    band.tail = node;
  }

  remove(node: QueueNode<T>): void {
    const index = this.#find(node.priority);
    const band = this.#bands[index];
    const { previous, next } = node;
    if (previous === undefined) band.head = next;
    else previous.next = next;
    if (next === undefined) band.tail = previous;
    else next.previous = previous;
    node.previous = undefined;
    node.next = undefined;
    if (band.head === undefined) this.#bands.splice(index, 1);
  }

  /** The one to be placed after `node`. */
  after(node: QueueNode<T>): QueueNode<T> | undefined {
    return node.next ?? this.#bands[this.#find(node.priority) + 1]?.head;
  }

  /** Index of the band of this priority, or of where it would be. */
  #find(priority: number): number {
    let low = 0;
    let high = this.#bands.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#bands[middle].priority > priority) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
