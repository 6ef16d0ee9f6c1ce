import type { Nanoseconds } from "../core/clock.ts";
import type { RequestRecord } from "../core/request-record.ts";

/**
 * The latencies of one request, undefined where it has none. They start at the intended send time: a client that cannot
 * keep its schedule because the server is slow would otherwise measure only the requests it got around to sending.
 */

/** Time to first token: to the first content that is not empty. */
export function ttftNs({ firstContentNs, intendedNs }: RequestRecord): Nanoseconds | undefined {
  return firstContentNs === undefined ? undefined : firstContentNs - intendedNs;
}

/** Time to first token from the moment the request was written to the wire, as most tools have it. */
export function wireTtftNs({ firstContentNs, sentNs }: RequestRecord): Nanoseconds | undefined {
  return firstContentNs === undefined || sentNs === undefined ? undefined : firstContentNs - sentNs;
}

/** To the last content; what the protocol sends after it (usage, end mark) is not waited for by anybody. */
export function e2eNs({ lastContentNs, intendedNs }: RequestRecord): Nanoseconds | undefined {
  return lastContentNs === undefined ? undefined : lastContentNs - intendedNs;
}

/**
 * Time per output token, (E2E - TTFT) / (output tokens - 1); an answer of one token has none, nor has one that came in one piece: when its
 * tokens were made is not known, and 0 would say that they took no time.
 */
export function tpotNs({ firstContentNs, lastContentNs, outputTokens }: RequestRecord): number | undefined {
  if (firstContentNs === undefined || lastContentNs === undefined || outputTokens < 2) return undefined;
  if (firstContentNs === lastContentNs) return undefined;
  return (lastContentNs - firstContentNs) / (outputTokens - 1);
}

/** How late the client sent it; large values mean that the client, not the server, was measured. */
export function scheduleLagNs({ sentNs, intendedNs }: RequestRecord): Nanoseconds | undefined {
  return sentNs === undefined ? undefined : sentNs - intendedNs;
}
