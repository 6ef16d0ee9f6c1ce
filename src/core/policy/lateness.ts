import { NS_PER_MS } from "../clock.ts";
import type { Offers } from "./offers.ts";

/** What a first token costs for being late; nothing while it is not known from when on it is (0). */
export function latenessMs(firstTokenNs: number, lateNs: number, price: number): number {
  return lateNs > 0 && firstTokenNs > lateNs ? (price * (firstTokenNs - lateNs)) / NS_PER_MS : 0;
}

/**
 * Adds to each offer's cost what its first token costs for being late. Whoever holds less of the prompt than the most is no less late than
 * the best of those who hold it: a first token that is in time because something was computed once more makes all after it later.
 */
export function chargeLateness(offers: Offers, count: number, mostHeld: number, lateNs: number, price: number): void {
  const { costs, firstTokensNs, held, lateness } = offers;
  let leastOfHolders = Number.POSITIVE_INFINITY;
  for (let at = 0; at < count; at++) {
    lateness[at] = latenessMs(firstTokensNs[at], lateNs, price);
    if (held[at] >= mostHeld) leastOfHolders = Math.min(leastOfHolders, lateness[at]);
  }
  for (let at = 0; at < count; at++) {
    if (held[at] < mostHeld) lateness[at] = Math.max(leastOfHolders, lateness[at]);
    costs[at] += lateness[at];
  }
}
