/**
 * What policies had learned at their last decisions, in one ring of numbers: to keep it costs a copy and no allocation.
 * Arrays of their own, kept until ten thousand newer ones have come, made one decision in a thousand wait for a collection.
 */
export class LearnedRing {
  readonly #size: number;
  #numbers: Float64Array | undefined;
  #next = 0;

  constructor(size: number) {
    this.#size = size;
  }

  /** Position in the endless sequence of numbers kept, or -1 if there are more than fit. */
  keep(numbers: ArrayLike<number>): number {
    const count = numbers.length;
    if (count > this.#size) return -1;
    // Most policies learn nothing and need no memory for it.
    const kept = (this.#numbers ??= new Float64Array(this.#size));
    // Those of one decision never wrap, so that they can be read in one go.
    const left = this.#size - (this.#next % this.#size);
    if (left < count) this.#next += left;
    const first = this.#next;
    const at = first % this.#size;
    for (let i = 0; i < count; i++) kept[at + i] = numbers[i];
    this.#next += count;
    return first;
  }

  /** Undefined once newer ones took their place. */
  read(first: number, count: number): readonly number[] | undefined {
    if (first < 0 || first < this.#next - this.#size) return undefined;
    const at = first % this.#size;
    return Array.from(this.#numbers?.subarray(at, at + count) ?? []);
  }
}
