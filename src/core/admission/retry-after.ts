import type { Nanoseconds } from "../clock.ts";
import type { DrainRates, ReplicaDrainRates } from "../load/drain-rates.ts";
import type { LoadColumns } from "../replica.ts";
import { type BusyKnob, busyKnobs } from "./busy.ts";
import type { WatermarkName, Watermarks } from "./types.ts";

/** Sooner than this a client would only add load. */
const MINIMUM_RETRY_AFTER_MS = 100;
/** A forecast of more than a minute is worth nothing, and a client that waits longer is lost. */
const MAXIMUM_RETRY_AFTER_MS = 60_000;
/** Where no rate was observed yet. */
export const DEFAULT_RETRY_AFTER_MS = 1_000;

/** When to come back if `amount` must drain first at `perSecond`, where a rate of 0 is unknown. */
export function drainMs(amount: number, perSecond: number): number {
  return perSecond > 0 ? clamp((amount / perSecond) * 1_000) : DEFAULT_RETRY_AFTER_MS;
}

/**
 * When the first of the candidates will be below all its watermarks, going by observed drain rates. Candidates without a
 * rate are left out as long as another has one: a guess must not beat an observation.
 */
export function retryAfterMs(
  candidates: ArrayLike<number>,
  count: number,
  columns: LoadColumns,
  watermarks: Watermarks,
  drainRates: DrainRates,
  nowNs: Nanoseconds,
): number {
  let soonestSeconds = Number.POSITIVE_INFINITY;
  for (let i = 0; i < count; i++) {
    const replica = candidates[i];
    const seconds = drainSeconds(busyKnobs(replica, columns, watermarks), drainRates.perSecond(replica, nowNs));
    if (seconds !== undefined && seconds < soonestSeconds) soonestSeconds = seconds;
  }
  return soonestSeconds === Number.POSITIVE_INFINITY ? DEFAULT_RETRY_AFTER_MS : clamp(soonestSeconds * 1_000);
}

/** Seconds until one replica is below all of `knobs`; undefined if the rate of any of them is unknown. */
export function drainSeconds(knobs: readonly BusyKnob[], rates: ReplicaDrainRates): number | undefined {
  let seconds = 0;
  for (const knob of knobs) {
    const perSecond = rateOf(knob.knob, rates);
    if (perSecond <= 0) return undefined;
    seconds = Math.max(seconds, excess(knob) / perSecond);
  }
  // A rate that has all but decayed overflows the quotient; that is a long time, and not an unknown one.
  return Math.min(seconds, Number.MAX_VALUE);
}

/** Whole units that must go before the value is below the threshold again: at the threshold itself, one. */
function excess(knob: BusyKnob): number {
  return Math.max(1, Math.floor(knob.used - knob.threshold * knob.capacity) + 1);
}

function rateOf(knob: WatermarkName, rates: ReplicaDrainRates): number {
  if (knob === "batchSlotsFraction") return rates.completionsPerSecond;
  if (knob === "kvBlocksFraction") return rates.blocksPerSecond;
  return rates.prefillTokensPerSecond;
}

function clamp(milliseconds: number): number {
  return Math.ceil(Math.min(MAXIMUM_RETRY_AFTER_MS, Math.max(MINIMUM_RETRY_AFTER_MS, milliseconds)));
}
