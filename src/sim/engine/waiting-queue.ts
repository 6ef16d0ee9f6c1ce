import type { Sequence } from "./engine-request.ts";

/** Requests waiting for admission, first come first served, with a way back to the front for those preempted. */
export class WaitingQueue {
  #items: (Sequence | undefined)[] = [];
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  get first(): Sequence | undefined {
    return this.#items[this.#head];
  }

  /** Whoever stands at this place, counted from 0; undefined behind the last. */
  at(place: number): Sequence | undefined {
    return this.#items[this.#head + place];
  }

  push(sequence: Sequence): void {
    this.#items.push(sequence);
  }

  pushFront(sequence: Sequence): void {
    if (this.#head > 0) this.#items[--this.#head] = sequence;
    else this.#items.unshift(sequence);
  }

  takeFirst(): void {
    this.#items[this.#head++] = undefined;
    // Moved down now and then, so that taking costs nothing and the array does not grow for ever.
    if (this.#head > 64 && this.#head * 2 > this.#items.length) {
      this.#items.splice(0, this.#head);
      this.#head = 0;
    }
  }

  remove(sequence: Sequence): boolean {
    const at = this.#items.indexOf(sequence, this.#head);
    if (at < 0) return false;
    this.#items.splice(at, 1);
    return true;
  }
}
