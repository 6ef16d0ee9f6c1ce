import { type Clock, NS_PER_MS } from "../core/clock.ts";

/** Wall time that never jumps, from now on as 0. */
export function monotonicClock(): Clock {
  const originMs = performance.now();
  // Not `hrtime.bigint`, which leaves garbage behind with every token.
  return { nowNs: () => Math.round((performance.now() - originMs) * NS_PER_MS) };
}
