import type { Nanoseconds } from "../clock.ts";

/** Prompts that were computed. */
export interface PrefillWork {
  readonly tokens: number;
  /** Query-key pairs: what attention adds to long prompts. */
  readonly pairs: number;
  /** How many times some prompt was done; several that were done at once were one batch. */
  readonly batches: number;
}

/** What a replica had computed in all at a moment. */
export interface PrefillMark {
  readonly atNs: Nanoseconds;
  tokens: number;
  pairs: number;
  batches: number;
  /** Batches before this moment, so that the first prompt done at it counts as one more and the others do not. */
  readonly batchesBefore: number;
}

/**
 * What each replica has computed of prompts since it joined, as first tokens told. Two requests that look at it at the same
 * moment share a mark, and what is added at that moment is behind both of them: prompts that are done together were computed
 * together, so whoever decodes from then on was delayed by none of them.
 */
export class PrefillLedger {
  readonly #latest: (PrefillMark | undefined)[] = [];

  /** The mark of now, which still grows if more is done at this very moment. */
  mark(replica: number, nowNs: Nanoseconds): PrefillMark {
    const latest = this.#latest[replica];
    if (latest !== undefined && latest.atNs === nowNs) return latest;
    const { tokens, pairs, batches } = latest ?? { tokens: 0, pairs: 0, batches: 0 };
    const mark = { atNs: nowNs, tokens, pairs, batches, batchesBefore: batches };
    this.#latest[replica] = mark;
    return mark;
  }

  /** A prompt is done. */
  add(replica: number, nowNs: Nanoseconds, tokens: number, pairs: number): PrefillMark {
    const mark = this.mark(replica, nowNs);
    mark.tokens += tokens;
    mark.pairs += pairs;
    mark.batches = mark.batchesBefore + 1;
    return mark;
  }

  reset(replica: number): void {
    this.#latest[replica] = undefined;
  }
}

/** What was computed between two marks. */
export function workBetween(from: PrefillMark, to: PrefillMark): PrefillWork {
  return { tokens: to.tokens - from.tokens, pairs: to.pairs - from.pairs, batches: to.batches - from.batches };
}

/** Query-key pairs of a prompt whose first `cachedTokens` are there. */
export function prefillPairs(promptTokens: number, cachedTokens: number): number {
  const uncached = promptTokens - cachedTokens;
  return uncached * (cachedTokens + uncached / 2);
}
