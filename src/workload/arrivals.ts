import { NS_PER_SECOND, type Nanoseconds } from "../core/clock.ts";
import { WarmpathError } from "../core/errors.ts";
import type { Rng } from "../core/rng.ts";
import { drawGamma } from "./draw.ts";

/** How requests or sessions arrive over time; `rateRps` is the mean rate of each. */
export type ArrivalProcess =
  | { readonly kind: "poisson"; readonly rateRps: number }
  | { readonly kind: "constant"; readonly rateRps: number }
  /** Gaps of a gamma distribution: shape 1 is Poisson, less is burstier, more is steadier. */
  | { readonly kind: "gamma"; readonly rateRps: number; readonly shape: number }
  /** `burstSize` at once, then silence until the mean rate is right again. */
  | { readonly kind: "burst"; readonly rateRps: number; readonly burstSize: number };

/** A function that returns one arrival time after the other, from 0 on, never decreasing. */
export function arrivalTimes(process: ArrivalProcess, rng: Rng): () => Nanoseconds {
  checkProcess(process);
  const gapSeconds = gapsOf(process, rng.stream("arrivals"));
  // Times are rounded, not gaps: rounding errors must not add up to a different rate.
  let seconds = 0;
  let isFirst = true;
  return () => {
    if (!isFirst || process.kind === "poisson" || process.kind === "gamma") seconds += gapSeconds();
    isFirst = false;
    return Math.round(seconds * NS_PER_SECOND);
  };
}

function gapsOf(process: ArrivalProcess, rng: Rng): () => number {
  const mean = 1 / process.rateRps;
  switch (process.kind) {
    case "poisson":
      return () => -Math.log(rng.uniform()) * mean;
    case "constant":
      return () => mean;
    case "gamma": {
      const { shape } = process;
      return () => (drawGamma(rng, shape) * mean) / shape;
    }
    case "burst": {
      const { burstSize } = process;
      let arrived = 0;
      return () => (++arrived % burstSize === 0 ? mean * burstSize : 0);
    }
  }
}

function checkProcess(process: ArrivalProcess): void {
  if (!(process.rateRps > 0 && process.rateRps < Infinity)) {
    throw new WarmpathError("WP_INVALID_INPUT", `rateRps must be more than 0, got ${process.rateRps}`);
  }
  if (process.kind === "gamma" && !(process.shape > 0 && process.shape < Infinity)) {
    throw new WarmpathError("WP_INVALID_INPUT", `shape must be more than 0, got ${process.shape}`);
  }
  if (process.kind === "burst" && !(Number.isInteger(process.burstSize) && process.burstSize > 0)) {
    throw new WarmpathError(
      "WP_INVALID_INPUT",
      `burstSize must be a whole number, 1 or more, got ${process.burstSize}`,
    );
  }
}
