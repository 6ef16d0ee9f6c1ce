/** How often something happened lately. Time is cut into slices and is given by the caller; it may stand still, but not go back. */
export class RollingCount {
  readonly #slices: Float64Array;
  readonly #sliceMs: number;
  /** Number of the newest slice since time began. */
  #newest = 0;
  #sum = 0;

  constructor(windowMs: number, slices = 10) {
    this.#slices = new Float64Array(slices);
    this.#sliceMs = windowMs / slices;
  }

  add(amount: number, nowMs: number): void {
    this.#forget(nowMs);
    this.#slices[this.#newest % this.#slices.length] += amount;
    this.#sum += amount;
  }

  /** What came within the window, to the accuracy of a slice. */
  sum(nowMs: number): number {
    this.#forget(nowMs);
    return this.#sum;
  }

  #forget(nowMs: number): void {
    const { length } = this.#slices;
    const newest = Math.floor(nowMs / this.#sliceMs);
    const passed = newest - this.#newest;
    if (passed <= 0) return;
    if (passed >= length) {
      this.#slices.fill(0);
      this.#sum = 0;
    } else {
      for (let slice = this.#newest + 1; slice <= newest; slice++) {
        this.#sum -= this.#slices[slice % length];
        this.#slices[slice % length] = 0;
      }
    }
    this.#newest = newest;
  }
}
