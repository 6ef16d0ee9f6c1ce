import type { Account } from "../../core/accounts.ts";
import { NS_PER_MS, NS_PER_SECOND, type Nanoseconds } from "../../core/clock.ts";
import { UNAVAILABLE, type Unavailable } from "../../core/request-record.ts";
import { type BucketCounts, RollingDistribution, type RollingLatency } from "./rolling-distribution.ts";

/** Ways to end other than completing; what is `unfinished` has not ended. */
export type ErrorKind = Exclude<Account, "completed" | "unfinished">;

const ERROR_KINDS: readonly ErrorKind[] = ["shed", "rejected", "failed", "timedOut", "cancelled"];

/** How a request ended, for the window. */
export interface RollingEnd {
  readonly account: Account;
  readonly e2eNs?: Nanoseconds | undefined;
  readonly tpotNs?: number | undefined;
  readonly promptTokens: number;
  readonly cachedTokens: number | Unavailable;
  /** Tokens that no chunk was counted for, because a chunk had several of them; negative if it was the other way round. */
  readonly uncountedTokens: number;
}

/** The last 60 seconds. Latencies in milliseconds; p99 of less than 1,000 says little. */
export interface RollingSnapshot {
  /** What the rates are over: 60 s, or less after a start. */
  readonly windowSeconds: number;
  /** Of first tokens that came in the window, whatever became of their requests. */
  readonly ttftMs: RollingLatency;
  /** Of gaps between chunks in the window. */
  readonly itlMs: RollingLatency;
  /** Of requests that completed in the window. */
  readonly tpotMs: RollingLatency;
  readonly e2eMs: RollingLatency;
  readonly offered: number;
  readonly completed: number;
  /** Requests that ended otherwise, by kind. */
  readonly errors: Readonly<Record<ErrorKind, number>>;
  /** Share of what ended in the window that did not complete, and the same by kind; null if nothing ended. */
  readonly errorRate: number | null;
  readonly errorRates: Readonly<Record<ErrorKind, number>> | null;
  /** Completed. */
  readonly requestsPerSecond: number;
  readonly outputTokensPerSecond: number;
  /** Share of prompt tokens that engines found in their caches. */
  readonly cacheHitRate: number | Unavailable;
  /**
   * A system that has stalled completes nothing, and percentiles stand still at their last good value: these two do not.
   */
  readonly inFlight: number;
  readonly oldestInFlightMs: number | null;
}

/** What one second brought, as plain data for another process. */
export interface RollingSlice {
  /** Number of the second since the start. */
  readonly second: number;
  readonly ttft: BucketCounts;
  readonly itl: BucketCounts;
  readonly tpot: BucketCounts;
  readonly e2e: BucketCounts;
  readonly counts: readonly number[];
}

/** Requests under way in another process. */
export interface InFlightElsewhere {
  readonly count: number;
  readonly oldestNs: Nanoseconds | undefined;
}

const WINDOW_SECONDS = 60;
const LATENCIES = ["ttft", "itl", "tpot", "e2e"] as const;
/** What is counted in every second, in this order. */
const COUNTED = ["offered", "completed", ...ERROR_KINDS, "tokens", "promptTokens", "cachedTokens"] as const;

type Counted = (typeof COUNTED)[number];

const AT: Readonly<Record<Counted, number>> = Object.fromEntries(
  COUNTED.map((name, at) => [name, at] as const),
) as Record<Counted, number>;

/**
 * Metrics over the last 60 seconds, second by second. Time is an argument of every call and never goes back. Slices of
 * several processes merge into exactly what one would have counted.
 */
export class RollingMetrics {
  readonly #latencies: Readonly<Record<(typeof LATENCIES)[number], RollingDistribution>> = {
    ttft: new RollingDistribution(WINDOW_SECONDS),
    itl: new RollingDistribution(WINDOW_SECONDS),
    tpot: new RollingDistribution(WINDOW_SECONDS),
    e2e: new RollingDistribution(WINDOW_SECONDS),
  };
  readonly #counts: readonly Float64Array[] = Array.from(
    { length: WINDOW_SECONDS },
    () => new Float64Array(COUNTED.length),
  );
  readonly #underWay = new Map<number, Nanoseconds>();
  readonly #elsewhere = new Map<number, InFlightElsewhere>();
  readonly #startNs: Nanoseconds;
  #second: number;

  constructor(startNs: Nanoseconds = 0) {
    this.#startNs = startNs;
    this.#second = Math.floor(startNs / NS_PER_SECOND);
  }

  /** A request is sent that was meant to be at `intendedNs`; `id` is unique among those under way. */
  offered(id: number, intendedNs: Nanoseconds, nowNs: Nanoseconds): void {
    this.#underWay.set(id, intendedNs);
    this.#counts[this.#advance(nowNs)][AT.offered] += 1;
  }

  firstToken(ttftNs: Nanoseconds, nowNs: Nanoseconds): void {
    this.#latencies.ttft.add(this.#advance(nowNs), ttftNs);
  }

  /** Content came in one read, so many events of it; `gapNs` since the read before, undefined for the first. */
  content(events: number, gapNs: Nanoseconds | undefined, nowNs: Nanoseconds): void {
    const slot = this.#advance(nowNs);
    this.#counts[slot][AT.tokens] += events;
    const { itl } = this.#latencies;
    if (gapNs !== undefined) itl.add(slot, gapNs);
    // Events of one read came at one time.
    if (events > 1) itl.addBucket(slot, 0, events - 1);
  }

  ended(id: number, end: RollingEnd, nowNs: Nanoseconds): void {
    this.#underWay.delete(id);
    if (end.account === "unfinished") return;
    const slot = this.#advance(nowNs);
    const counts = this.#counts[slot];
    counts[AT[end.account]] += 1;
    counts[AT.tokens] += end.uncountedTokens;
    if (end.cachedTokens !== UNAVAILABLE) {
      counts[AT.promptTokens] += end.promptTokens;
      counts[AT.cachedTokens] += end.cachedTokens;
    }
    if (end.account !== "completed") return;
    if (end.e2eNs !== undefined) this.#latencies.e2e.add(slot, end.e2eNs);
    if (end.tpotNs !== undefined) this.#latencies.tpot.add(slot, end.tpotNs);
  }

  /** Requests under way here. */
  inFlight(): InFlightElsewhere {
    // A map keeps the order in which requests were offered.
    const [oldestNs] = this.#underWay.values();
    return { count: this.#underWay.size, oldestNs };
  }

  /** What another process has under way. */
  setInFlightElsewhere(process: number, inFlight: InFlightElsewhere): void {
    this.#elsewhere.set(process, inFlight);
  }

  /** What a second brought, for another process; undefined once it has left the window. */
  slice(second: number): RollingSlice | undefined {
    if (second > this.#second || second <= this.#second - WINDOW_SECONDS || second < 0) return undefined;
    const slot = second % WINDOW_SECONDS;
    const { ttft, itl, tpot, e2e } = this.#latencies;
    return {
      second,
      ttft: ttft.bucketCounts(slot),
      itl: itl.bucketCounts(slot),
      tpot: tpot.bucketCounts(slot),
      e2e: e2e.bucketCounts(slot),
      counts: [...this.#counts[slot]],
    };
  }

  /** Adds what a second brought to another process. */
  absorb(slice: RollingSlice): void {
    if (slice.second > this.#second) this.#advance(slice.second * NS_PER_SECOND);
    if (slice.second <= this.#second - WINDOW_SECONDS) return;
    const slot = slice.second % WINDOW_SECONDS;
    for (const name of LATENCIES) {
      const pairs = slice[name];
      for (let i = 0; i < pairs.length; i += 2) this.#latencies[name].addBucket(slot, pairs[i], pairs[i + 1]);
    }
    for (const [at, count] of slice.counts.entries()) this.#counts[slot][at] += count;
  }

  read(nowNs: Nanoseconds): RollingSnapshot {
    this.#advance(nowNs);
    const sums = new Float64Array(COUNTED.length);
    for (const counts of this.#counts) for (let at = 0; at < sums.length; at++) sums[at] += counts[at];
    const windowNs = nowNs - Math.max(this.#startNs, (this.#second - WINDOW_SECONDS + 1) * NS_PER_SECOND);
    // Rates over a moment are noise; the first second is taken as a whole one.
    const windowSeconds = Math.max(1, windowNs / NS_PER_SECOND);
    const errors = byKind((kind) => sums[AT[kind]]);
    const wrong = ERROR_KINDS.reduce((sum, kind) => sum + errors[kind], 0);
    const completed = sums[AT.completed];
    const ended = completed + wrong;
    const { ttft, itl, tpot, e2e } = this.#latencies;
    return {
      windowSeconds,
      ttftMs: ttft.latency(NS_PER_MS),
      itlMs: itl.latency(NS_PER_MS),
      tpotMs: tpot.latency(NS_PER_MS),
      e2eMs: e2e.latency(NS_PER_MS),
      offered: sums[AT.offered],
      completed,
      errors,
      errorRate: ended === 0 ? null : wrong / ended,
      errorRates: ended === 0 ? null : byKind((kind) => errors[kind] / ended),
      requestsPerSecond: completed / windowSeconds,
      outputTokensPerSecond: Math.max(0, sums[AT.tokens]) / windowSeconds,
      cacheHitRate: sums[AT.promptTokens] === 0 ? UNAVAILABLE : sums[AT.cachedTokens] / sums[AT.promptTokens],
      ...this.#inFlight(nowNs),
    };
  }

  #inFlight(nowNs: Nanoseconds): Pick<RollingSnapshot, "inFlight" | "oldestInFlightMs"> {
    let inFlight = 0;
    let oldestNs = Infinity;
    for (const one of [this.inFlight(), ...this.#elsewhere.values()]) {
      inFlight += one.count;
      oldestNs = Math.min(oldestNs, one.oldestNs ?? Infinity);
    }
    return { inFlight, oldestInFlightMs: oldestNs === Infinity ? null : (nowNs - oldestNs) / NS_PER_MS };
  }

  /** Empties the seconds that have left the window; returns the slot of this one. */
  #advance(nowNs: Nanoseconds): number {
    const second = Math.floor(nowNs / NS_PER_SECOND);
    if (second <= this.#second) return this.#second % WINDOW_SECONDS;
    const passed = Math.min(second - this.#second, WINDOW_SECONDS);
    for (let i = 0; i < passed; i++) {
      const slot = (second - i) % WINDOW_SECONDS;
      for (const name of LATENCIES) this.#latencies[name].clear(slot);
      this.#counts[slot].fill(0);
    }
    this.#second = second;
    return second % WINDOW_SECONDS;
  }
}

function byKind(valueOf: (kind: ErrorKind) => number): Record<ErrorKind, number> {
  return Object.fromEntries(ERROR_KINDS.map((kind) => [kind, valueOf(kind)])) as Record<ErrorKind, number>;
}
