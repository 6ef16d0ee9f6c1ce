import type { Clock } from "../core/clock.ts";

/** Wall time that never jumps, from now on as 0. */
export function monotonicClock(): Clock {
  const originNs = process.hrtime.bigint();
  return { nowNs: () => Number(process.hrtime.bigint() - originNs) };
}
