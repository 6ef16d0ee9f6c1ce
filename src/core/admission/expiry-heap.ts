import type { QueueNode } from "./queue-entry.ts";

/** A binary heap of waiting requests by the time they expire; nodes know their index, so any of them can leave. */
export class ExpiryHeap<T> {
  readonly #nodes: QueueNode<T>[] = [];

  /** The one that expires first. */
  get first(): QueueNode<T> | undefined {
    return this.#nodes[0];
  }

  push(node: QueueNode<T>): void {
    this.#nodes.push(node);
    this.#siftUp(node, this.#nodes.length - 1);
  }

  remove(node: QueueNode<T>): void {
    const index = node.heapIndex;
    const last = this.#nodes.pop();
    node.heapIndex = -1;
    if (last === undefined || last === node) return;
    this.#siftUp(last, index);
    this.#siftDown(last, last.heapIndex);
  }

  #siftUp(node: QueueNode<T>, start: number): void {
    let index = start;
    while (index > 0) {
      const parentIndex = (index - 1) >>> 1;
      const parent = this.#nodes[parentIndex];
      if (!isBefore(node, parent)) break;
      this.#place(parent, index);
      index = parentIndex;
    }
    this.#place(node, index);
  }

  #siftDown(node: QueueNode<T>, start: number): void {
    const count = this.#nodes.length;
    let index = start;
    for (;;) {
      let childIndex = 2 * index + 1;
      if (childIndex >= count) break;
      const right = childIndex + 1;
      if (right < count && isBefore(this.#nodes[right], this.#nodes[childIndex])) childIndex = right;
      const child = this.#nodes[childIndex];
      if (!isBefore(child, node)) break;
      this.#place(child, index);
      index = childIndex;
    }
    this.#place(node, index);
  }

  #place(node: QueueNode<T>, index: number): void {
    this.#nodes[index] = node;
    node.heapIndex = index;
  }
}

// Equal times go in the order of arrival, so that two equal runs expire in the same order.
function isBefore<T>(a: QueueNode<T>, b: QueueNode<T>): boolean {
  return a.expiresNs < b.expiresNs || (a.expiresNs === b.expiresNs && a.sequence < b.sequence);
}
