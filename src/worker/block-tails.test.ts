import { describe, expect, test } from "vitest";
import { sequenceHashes } from "../core/hash.ts";
import { BlockTails } from "./block-tails.ts";

const BLOCK_TOKENS = 4;
const hashes = (tokens: Uint32Array): Uint32Array => sequenceHashes(tokens, BLOCK_TOKENS);

function tailsAfter(...contexts: number[][]): BlockTails {
  const tails = new BlockTails(BLOCK_TOKENS, 2);
  for (const numbers of contexts) {
    const context = Uint32Array.from(numbers);
    tails.leave(context, hashes(context), context.length);
  }
  return tails;
}

function reach(tails: BlockTails, ...numbers: number[]): number {
  const prompt = Uint32Array.from(numbers);
  return tails.reach(prompt, hashes(prompt));
}

describe("what is left behind the last full block", () => {
  test("reaches as far as a prompt is the same", () => {
    const tails = tailsAfter([1, 2, 3, 4, 5, 6, 7]);
    expect(reach(tails, 1, 2, 3, 4, 5, 6, 7, 8, 9)).toBe(7);
    expect(reach(tails, 1, 2, 3, 4, 5, 9)).toBe(5);
    expect(reach(tails, 1, 2, 3, 4, 9)).toBe(0);
  });

  test("belongs to the blocks before it, or to the start of a prompt", () => {
    const tails = tailsAfter([1, 2, 3, 4, 5, 6], [8, 9]);
    expect(reach(tails, 2, 2, 3, 4, 5, 6)).toBe(0);
    expect(reach(tails, 8, 9, 10, 11, 12)).toBe(2);
  });

  test("is replaced by a newer one, and forgotten when there are too many", () => {
    const replaced = tailsAfter([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 7]);
    expect(reach(replaced, 1, 2, 3, 4, 5, 6)).toBe(0);
    const crowded = tailsAfter([1, 1, 1, 1, 5], [2, 2, 2, 2, 5], [3, 3, 3, 3, 5]);
    expect([1, 2, 3].map((n) => reach(crowded, n, n, n, n, 5))).toEqual([0, 5, 5]);
  });
});
