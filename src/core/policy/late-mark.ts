import type { Nanoseconds } from "../clock.ts";

/** Requests that are remembered, a power of two. */
const MEMORY = 2048;
/** Fewer tell nothing of the late ones: until then everybody counts as late. */
const FEWEST = 100;
/** One in so many is late. */
const LATE_SHARE = 16;
/** Bins of a 32nd of a doubling each, from a microsecond on: to within 2 %, over nine hours. */
const BINS_PER_DOUBLING = 32;
const SHORTEST_NS = 1e3;
const BINS = 35 * BINS_PER_DOUBLING;

/**
 * From when on a first token is late: a time that one in sixteen of the last requests could not have kept wherever they had
 * gone. Of what they could have had and not of what they got, so that whoever lets others wait does not thereby allow it.
 */
export class LateMark {
  readonly #bins: Uint16Array = new Uint16Array(MEMORY);
  readonly #counts: Uint16Array = new Uint16Array(BINS);
  #seen = 0;
  /** The bin of the mark, and how many requests lie in bins above it. */
  #markBin = 0;
  #above = 0;

  /** 0 while too little is known. */
  get ns(): Nanoseconds {
    return this.#seen < FEWEST ? 0 : SHORTEST_NS * 2 ** ((this.#markBin + 1) / BINS_PER_DOUBLING);
  }

  /** A request came that could have had its first token after so long at the soonest. */
  note(soonestNs: Nanoseconds): void {
    const place = this.#seen & (MEMORY - 1);
    if (this.#seen >= MEMORY) this.#count(this.#bins[place], -1);
    const bin = binOf(soonestNs);
    this.#bins[place] = bin;
    this.#count(bin, 1);
    this.#seen += 1;
    const late = Math.min(this.#seen, MEMORY) / LATE_SHARE;
    while (this.#above > late) this.#above -= this.#counts[++this.#markBin];
    while (this.#markBin > 0 && this.#above + this.#counts[this.#markBin] <= late) {
      this.#above += this.#counts[this.#markBin--];
    }
  }

  #count(bin: number, change: number): void {
    this.#counts[bin] += change;
    if (bin > this.#markBin) this.#above += change;
  }
}

function binOf(ns: Nanoseconds): number {
  const bin = Math.floor(Math.log2(Math.max(ns, SHORTEST_NS) / SHORTEST_NS) * BINS_PER_DOUBLING);
  return Math.min(BINS - 1, bin);
}
