import type { Nanoseconds } from "../clock.ts";

/** What was foreseen of a prompt part of which another was yet to compute. */
export interface ForeseenSharing {
  readonly placedNs: Nanoseconds;
  readonly promptTokens: number;
  /** Until its first token if it is spared that part, and if it computes it again. */
  readonly sharedInNs: Nanoseconds;
  readonly apartInNs: Nanoseconds;
}

/** Believed before any first token has told, so that it is tried; and how far one moves it for which all of its time was at stake. */
const PRIOR = 0.75;
const GAIN = 0.05;
/** Less is not worth waiting for. */
const ENOUGH = 0.7;

/**
 * How much of a prompt under way those are spared who join it. Engines differ: some find blocks as soon as they are scheduled, some after
 * each chunk, and some only once the prompt is whole, so that whoever came meanwhile computes it all again. None says which it
 * is, but first tokens do.
 */
export class SharedPrefill {
  /** The latest of each replica. */
  readonly #foreseen: (ForeseenSharing | undefined)[] = [];
  #spared = PRIOR;

  /** The share. */
  get spared(): number {
    return this.#spared;
  }

  get isWorthWaiting(): boolean {
    return this.#spared >= ENOUGH;
  }

  placed(replica: number, foreseen: ForeseenSharing): void {
    this.#foreseen[replica] = foreseen;
  }

  firstToken(replica: number, promptTokens: number, placedNs: Nanoseconds, tookNs: Nanoseconds): void {
    const foreseen = this.#foreseen[replica];
    // Of those that come at the same moment, the length tells which one it is.
    if (foreseen === undefined || foreseen.placedNs !== placedNs || foreseen.promptTokens !== promptTokens) return;
    this.#foreseen[replica] = undefined;
    const { sharedInNs, apartInNs } = foreseen;
    const atStakeNs = apartInNs - sharedInNs;
    if (atStakeNs <= 0) return;
    const spared = Math.max(0, Math.min(1, (apartInNs - tookNs) / atStakeNs));
    this.#spared += GAIN * (atStakeNs / apartInNs) * (spared - this.#spared);
  }

  forget(replica: number): void {
    this.#foreseen[replica] = undefined;
  }
}
