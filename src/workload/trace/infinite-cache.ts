import { promptBlockHashes } from "../prompt-blocks.ts";
import type { Prompt } from "../prompt.ts";
import { inputTokensOf, type TraceRow } from "./row.ts";

/** What one cache that never forgets would find, without the blocks of answers. */
export interface CacheCeiling {
  /** Leading blocks that an earlier row has had, and blocks in all. */
  readonly hitBlocks: number;
  readonly blocks: number;
  readonly distinctBlocks: number;
  readonly hitTokens: number;
  readonly tokens: number;
  /** Mean over rows of each row's own share of hit tokens. */
  readonly meanRowShare: number;
}

/**
 * The ceiling in the ids of the trace. Every id counts, the one of a cut last block too: this is how the published 36.6,
 * 64.0 and 38.0 % come out. Without the cut ones they would be 38.2, 65.9 and 40.0 %.
 */
export function idCacheCeiling(rows: readonly TraceRow[], traceBlockTokens: number): CacheCeiling {
  const counter = new CeilingCounter();
  const seen = new Set<number>();
  for (const [at, row] of rows.entries()) {
    const { hashIds } = row;
    const tokens = inputTokensOf(row, at);
    let hits = 0;
    while (hits < hashIds.length && seen.has(hashIds[hits])) hits++;
    for (const id of hashIds) seen.add(id);
    counter.add(hits, hashIds.length, Math.min(hits * traceBlockTokens, tokens), tokens);
  }
  return counter.ceiling(seen.size);
}

/** The ceiling in full blocks of an engine, which is what its cache can hold: what a fleet can reach at best. */
export function engineCacheCeiling(prompts: Iterable<Prompt>, blockTokens: number): CacheCeiling {
  const counter = new CeilingCounter();
  const seen = new Set<bigint>();
  for (const prompt of prompts) {
    const { count, sequence } = promptBlockHashes(prompt, blockTokens);
    const keys = Array.from({ length: count }, (_, block) => wideKey(sequence, block));
    let hits = 0;
    while (hits < count && seen.has(keys[hits])) hits++;
    for (const key of keys) seen.add(key);
    counter.add(hits, count, hits * blockTokens, prompt.tokens);
  }
  return counter.ceiling(seen.size);
}

class CeilingCounter {
  #hitBlocks = 0;
  #blocks = 0;
  #hitTokens = 0;
  #tokens = 0;
  #rows = 0;
  #shares = 0;

  add(hitBlocks: number, blocks: number, hitTokens: number, tokens: number): void {
    this.#hitBlocks += hitBlocks;
    this.#blocks += blocks;
    this.#hitTokens += hitTokens;
    this.#tokens += tokens;
    this.#rows++;
    this.#shares += hitTokens / tokens;
  }

  ceiling(distinctBlocks: number): CacheCeiling {
    return {
      hitBlocks: this.#hitBlocks,
      blocks: this.#blocks,
      distinctBlocks,
      hitTokens: this.#hitTokens,
      tokens: this.#tokens,
      meanRowShare: this.#rows === 0 ? 0 : this.#shares / this.#rows,
    };
  }
}

function wideKey(hashes: Uint32Array, block: number): bigint {
  return (BigInt(hashes[2 * block + 1]) << 32n) | BigInt(hashes[2 * block]);
}
