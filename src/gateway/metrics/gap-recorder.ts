import type { GapCounts } from "../decider.ts";
import { LATENCY_BOUNDS_SECONDS, bucketOf } from "./buckets.ts";

const BOUNDS_MS: Float64Array = Float64Array.from(LATENCY_BOUNDS_SECONDS, (seconds) => seconds * 1000);

/**
 * The gaps between the chunks of one stream, by bucket. A gap costs a search over numbers and an addition, and a request is
 * told to the metrics once, at its end: nothing is looked up by label and nothing is sent anywhere per chunk.
 */
export class GapRecorder implements GapCounts {
  readonly counts: Uint32Array = new Uint32Array(BOUNDS_MS.length + 1);
  #sumMs = 0;

  get sumSeconds(): number {
    return this.#sumMs / 1000;
  }

  /** Notes a gap, and that `tokens` came at its end: several at once are as many gaps, all but one of nothing. */
  add(gapMs: number, tokens: number): void {
    this.counts[bucketOf(BOUNDS_MS, gapMs)] += 1;
    if (tokens > 1) this.counts[0] += tokens - 1;
    this.#sumMs += gapMs;
  }
}
