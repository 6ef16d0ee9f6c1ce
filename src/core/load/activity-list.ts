import type { Nanoseconds } from "../clock.ts";
import type { PrefillMark } from "./prefill-ledger.ts";

/** What one request in flight holds on its replica; released exactly as it stands here, whatever was observed since. */
export interface Reservation {
  readonly id: string;
  readonly replica: number;
  /** Hashes of the prompt's full blocks; empty where they are not known. */
  readonly sequence: Uint32Array;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly placedNs: Nanoseconds;
  outputTokens: number;
  /** Blocks added to the replica's `activeBlocks` so far. */
  blocks: number;
  firstTokenNs: Nanoseconds | undefined;
  lastTokenNs: Nanoseconds;
  lastActivityNs: Nanoseconds;
  /** Whole blocks of its prompt that were cached when it was placed. */
  readonly cachedBlocks: number;
  /** Query-key pairs of its prompt. */
  readonly pairs: number;
  /** What its replica had computed of prompts when it was last heard of. */
  prefillMark: PrefillMark;
  earlier: Reservation | undefined;
  later: Reservation | undefined;
}

/**
 * Reservations in the order of their last activity, linked through the reservations themselves: a touch is a few pointer
 * writes, and expiry looks only at what expires.
 */
export class ActivityList {
  #earliest: Reservation | undefined;
  #latest: Reservation | undefined;

  /** The reservation that has been silent the longest. */
  get earliest(): Reservation | undefined {
    return this.#earliest;
  }

  append(reservation: Reservation, nowNs: Nanoseconds): void {
    const latest = this.#latest;
    // Signals of several sources can arrive with clocks slightly apart; the order must hold all the same.
    reservation.lastActivityNs = latest !== undefined && latest.lastActivityNs > nowNs ? latest.lastActivityNs : nowNs;
    reservation.earlier = latest;
    reservation.later = undefined;
    if (latest === undefined) this.#earliest = reservation;
    else latest.later = reservation;
    this.#latest = reservation;
  }

  touch(reservation: Reservation, nowNs: Nanoseconds): void {
    if (reservation === this.#latest) {
      if (nowNs > reservation.lastActivityNs) reservation.lastActivityNs = nowNs;
      return;
    }
    this.remove(reservation);
    this.append(reservation, nowNs);
  }

  remove(reservation: Reservation): void {
    const { earlier, later } = reservation;
    if (earlier === undefined) this.#earliest = later;
    else earlier.later = later;
    if (later === undefined) this.#latest = earlier;
    else later.earlier = earlier;
    reservation.earlier = undefined;
    reservation.later = undefined;
  }
}
