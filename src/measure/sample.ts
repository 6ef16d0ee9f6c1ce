import { percentileOfSorted } from "./percentile.ts";
import { type LatencySummary, type PopulationSummaries, shareOf, summarise } from "./summary.ts";

/** A sample as plain data, to be sent from the process that collected it to the one that reports. */
export interface SampleData {
  readonly values: Float64Array;
  readonly unreached: number;
}

/**
 * Every value of a latency, and how many requests never reached one. All statistics are computed from the sorted
 * values, so they depend neither on the order of adding nor on how the sample was split before it was merged.
 */
export class Sample {
  #values: Float64Array = new Float64Array(64);
  #length = 0;
  #unreached = 0;
  #isSorted = true;

  static from(data: SampleData): Sample {
    const sample = new Sample();
    sample.#append(data.values);
    sample.#unreached = data.unreached;
    return sample;
  }

  /** Values that were reached. */
  get reached(): number {
    return this.#length;
  }

  /** Requests that never got there: +∞ in the offered population, absent from the completed one. */
  get unreached(): number {
    return this.#unreached;
  }

  add(value: number): void {
    if (this.#length === this.#values.length) this.#reserve(this.#length * 2);
    this.#values[this.#length] = value;
    this.#length += 1;
    this.#isSorted = false;
  }

  addUnreached(count = 1): void {
    this.#unreached += count;
  }

  /** Adds another sample; exactly what collecting both in one would have given. */
  merge(other: Sample): void {
    this.#append(other.#values.subarray(0, other.#length));
    this.#unreached += other.#unreached;
  }

  /** The reached values in ascending order; valid until the next change. */
  sorted(): Float64Array {
    const values = this.#values.subarray(0, this.#length);
    if (!this.#isSorted) values.sort();
    this.#isSorted = true;
    return values;
  }

  toData(): SampleData {
    return { values: this.sorted().slice(), unreached: this.#unreached };
  }

  /** Both populations, values divided by `unit`. */
  summaries(unit: number): PopulationSummaries {
    return { completed: this.#summary(0, unit), offered: this.#summary(this.#unreached, unit) };
  }

  #summary(unreached: number, unit: number): LatencySummary {
    const sorted = this.sorted();
    return summarise(sorted.length + unreached, (name) => {
      if (name !== "mean") return percentileOfSorted(sorted, shareOf(name), unreached) / unit;
      return unreached > 0 ? Infinity : meanOf(sorted) / unit;
    });
  }

  #append(values: Float64Array): void {
    if (this.#length + values.length > this.#values.length) this.#reserve(2 * (this.#length + values.length));
    this.#values.set(values, this.#length);
    this.#length += values.length;
    this.#isSorted = false;
  }

  #reserve(capacity: number): void {
    const grown = new Float64Array(capacity);
    grown.set(this.#values.subarray(0, this.#length));
    this.#values = grown;
  }
}

/** The arithmetic mean; NaN of nothing. */
export function meanOf(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i];
  return sum / values.length;
}
