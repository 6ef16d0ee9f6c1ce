import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hashSeed, hashText, sequenceHashes } from "../core/hash.ts";
import { GrowingBlocks, hashPromptBlocks, promptBlockHashes } from "./prompt-blocks.ts";
import { promptTokens } from "./prompt-content.ts";
import { commonPrefixTokens, extendPrompt, type Prompt, promptOf, type Segment, segmentsOf } from "./prompt.ts";

const segment: fc.Arbitrary<Segment> = fc.record({ id: fc.integer({ min: -2, max: 4 }), tokens: fc.nat(40) });
const segments = fc.array(segment, { maxLength: 8 });
const blockTokens = fc.integer({ min: 1, max: 24 });

function uniform(ids: readonly number[], tokens: number): Prompt {
  return { kind: "uniform", tokens, ids, segmentTokens: 512 };
}

function hashTexts({ sequence, count }: { sequence: Uint32Array; count: number }): string[] {
  return Array.from({ length: count }, (_, block) => hashText(sequence[2 * block], sequence[2 * block + 1]));
}

describe("block hashes of a prompt", () => {
  test("are equal exactly where the tokens that a live client sends are equal", () => {
    fc.assert(
      fc.property(segments, segments, blockTokens, (first, second, size) => {
        // Neighbouring runs of one id are different content to the symbols, and to the tokens, which start again.
        const [a, b] = [promptOf(first), promptOf(second)];
        const symbolic = [a, b].map((prompt) => hashTexts(promptBlockHashes(prompt, size)));
        const ofTokens = [a, b].map((prompt) => {
          const sequence = sequenceHashes(promptTokens(prompt, 7, 100_000), size);
          return hashTexts({ sequence, count: sequence.length / 2 });
        });
        expect(symbolic.map((hashes) => hashes.length)).toEqual(ofTokens.map((hashes) => hashes.length));
        for (let block = 0; block < Math.min(symbolic[0].length, symbolic[1].length); block++) {
          const agree = ofTokens[0][block] === ofTokens[1][block];
          expect(symbolic[0][block] === symbolic[1][block]).toBe(agree);
        }
      }),
    );
  });

  test("agree as far as the prompts have whole blocks in common", () => {
    fc.assert(
      fc.property(segments, segments, segments, blockTokens, (common, first, second, size) => {
        const a = promptOf([...common, ...first]);
        const b = promptOf([...common, ...second]);
        const [hashesOfA, hashesOfB] = [a, b].map((prompt) => hashTexts(promptBlockHashes(prompt, size)));
        const shared = Math.floor(commonPrefixTokens(a, b) / size);
        expect(hashesOfA.slice(0, shared)).toEqual(hashesOfB.slice(0, shared));
      }),
    );
  });

  test("give 512 / block size blocks per id of a trace, all distinct", () => {
    const hashes = promptBlockHashes(uniform([5, 6, 7], 1400), 64);
    expect(hashes.count).toBe(21);
    expect(new Set(hashTexts({ sequence: hashes.local, count: hashes.count })).size).toBe(21);
  });

  test("are the same for a row of a trace as for its segments, whether or not the block size divides 512", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 3000 }),
        fc.constantFrom(1, 16, 24, 48, 64, 100, 512, 700),
        (tokens, size) => {
          const row = uniform([9, 2 ** 40, 3, 4, 5, 6], tokens);
          expect(promptBlockHashes(row, size)).toEqual(promptBlockHashes(promptOf(segmentsOf(row)), size));
        },
      ),
    );
  });

  test("can be written for some blocks alone, a last one that is not full too", () => {
    const row = uniform([1, 2, 3], 1030);
    const all = new Uint32Array(34);
    hashPromptBlocks(row, 0, 17, 64, { lo: 1, hi: 2 }, all);
    const some = new Uint32Array(34);
    hashPromptBlocks(row, 11, 17, 64, { lo: 1, hi: 2 }, some);
    expect(some.subarray(22)).toEqual(all.subarray(22));
    expect([all[32], all[33]]).not.toEqual([0, 0]);
  });

  test("differ under another adapter or salt, and for ids beyond 32 bits", () => {
    const plain = hashTexts(promptBlockHashes(promptOf([{ id: 1, tokens: 64 }]), 64));
    const salted = promptBlockHashes(promptOf([{ id: 1, tokens: 64 }]), 64, hashSeed({ cacheSalt: "a" }));
    const far = promptBlockHashes(promptOf([{ id: 1 + 2 ** 32, tokens: 64 }]), 64);
    expect(new Set([...plain, ...hashTexts(salted), ...hashTexts(far)]).size).toBe(3);
  });

  test("do not collide in half a million blocks of a trace", () => {
    const ids = Array.from({ length: 8192 }, (_, at) => at);
    const { local, count } = promptBlockHashes(uniform(ids, 512 * ids.length), 8);
    expect(new Set(hashTexts({ sequence: local, count })).size).toBe(count);
  });
});

describe("the blocks of a growing conversation", () => {
  test("are those of the whole prompt, however it grew or was cut", () => {
    fc.assert(
      fc.property(fc.array(segments, { maxLength: 5 }), fc.array(segments), blockTokens, (turns, others, size) => {
        const growing = new GrowingBlocks(size);
        let prompt = promptOf([]);
        for (const [turn, added] of turns.entries()) {
          growing.extend(extendPrompt(prompt, others[turn] ?? []));
          prompt = extendPrompt(prompt, added);
          expect(growing.extend(prompt)).toEqual(promptBlockHashes(prompt, size));
        }
      }),
    );
  });

  test("leave what was handed out before as it was", () => {
    const growing = new GrowingBlocks(4);
    const start = promptOf([{ id: 1, tokens: 10 }]);
    const before = growing.extend(extendPrompt(start, [{ id: 2, tokens: 10 }]));
    const copy = before.sequence.slice();
    const after = growing.extend(extendPrompt(start, [{ id: 3, tokens: 30 }]));
    expect(before.sequence).toEqual(copy);
    expect(after.sequence.subarray(0, 4)).toEqual(copy.subarray(0, 4));
    expect(after.sequence.subarray(4, 6)).not.toEqual(copy.subarray(4, 6));
  });
});
