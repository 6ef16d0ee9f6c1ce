import type { Nanoseconds } from "./clock.ts";
import { WarmpathError } from "./errors.ts";

/** What is known of a request before it is placed. */
export interface RoutedRequest {
  readonly id: string;
  readonly promptTokens: number;
  /** Sequence hashes of the full prompt blocks, `[lo, hi]` pairs; may be longer than `blocks` says. */
  readonly sequence: Uint32Array;
  readonly blocks: number;
  /** Upper bound on output tokens, where the client gave one. */
  readonly maxOutputTokens?: number;
  /** Groups the turns of one conversation for affinity policies. */
  readonly session?: string;
  /** Larger goes first in a queue. */
  readonly priority?: number;
  /** After this the client no longer wants to start; only a queue looks at it. */
  readonly deadlineNs?: Nanoseconds;
}

/** Refuses a request that the load model or the index could not digest, before anything is written down for it. */
export function checkRequest(request: RoutedRequest): void {
  const problem = problemOf(request);
  if (problem !== undefined) throw new WarmpathError("WP_INVALID_INPUT", `request ${request.id}: ${problem}`);
}

function problemOf({
  promptTokens,
  blocks,
  sequence,
  priority = 0,
  deadlineNs = 0,
}: RoutedRequest): string | undefined {
  if (!Number.isSafeInteger(promptTokens) || promptTokens < 0) return `promptTokens must be whole, got ${promptTokens}`;
  if (!Number.isInteger(blocks) || blocks < 0) return `blocks must be whole, got ${blocks}`;
  if (2 * blocks > sequence.length) return `blocks is ${blocks}, but the sequence has ${sequence.length / 2} hashes`;
  if (Number.isNaN(deadlineNs)) return "deadlineNs must be a number";
  return Number.isNaN(priority) ? "priority must be a number" : undefined;
}
