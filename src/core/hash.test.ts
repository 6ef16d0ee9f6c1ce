import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  NO_IDENTITY,
  ROOT_HI,
  ROOT_LO,
  addMultimodalKeys,
  chainHashes,
  hashBlocks,
  hashText,
  sequenceHashes,
} from "./hash.ts";
import { Rng } from "./rng.ts";

const BLOCK_TOKENS = 16;

function locals(tokens: Uint32Array, blockTokens: number = BLOCK_TOKENS): Uint32Array {
  const out = new Uint32Array(2 * Math.floor(tokens.length / blockTokens));
  hashBlocks(tokens, tokens.length, blockTokens, NO_IDENTITY, out);
  return out;
}

function randomTokens(rng: Rng, length: number, vocabulary: number = 150_000): Uint32Array {
  return Uint32Array.from({ length }, () => rng.below(vocabulary));
}

function keysOf(hashes: Uint32Array): string[] {
  return Array.from({ length: hashes.length / 2 }, (_, i) => hashText(hashes[2 * i], hashes[2 * i + 1]));
}

/** Chi-squared over 256 equally likely classes; 255 degrees of freedom give 255 ± 22.6. */
function chiSquared(classes: Iterable<number>): number {
  const counts = new Float64Array(256);
  let total = 0;
  for (const value of classes) {
    counts[value & 255]++;
    total++;
  }
  const expected = total / 256;
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}

describe("block identity", () => {
  it("covers full blocks only", () => {
    const tokens = randomTokens(new Rng(1), 3 * BLOCK_TOKENS + 5);
    expect(sequenceHashes(tokens, BLOCK_TOKENS)).toHaveLength(6);
    expect(sequenceHashes(tokens.subarray(0, BLOCK_TOKENS - 1), BLOCK_TOKENS)).toHaveLength(0);
  });

  it("gives equal prefixes equal sequence hashes, and different ones from the first difference on", () => {
    fc.assert(
      fc.property(
        fc.uint32Array({ minLength: 80, maxLength: 80, max: 200_000 }),
        fc.integer({ min: 0, max: 79 }),
        fc.integer({ min: 1, max: 150_000 }),
        fc.integer({ min: 1, max: 17 }),
        (tokens, position, change, blockTokens) => {
          const other = tokens.slice();
          other[position] += change;
          const mine = keysOf(sequenceHashes(tokens, blockTokens));
          const its = keysOf(sequenceHashes(other, blockTokens));
          const changed = Math.floor(position / blockTokens);
          mine.forEach((key, block) => expect(key === its[block]).toBe(block < changed));
        },
      ),
    );
  });

  it("hashes a block's tokens alike wherever the block stands, but chains its position", () => {
    const block = randomTokens(new Rng(2), BLOCK_TOKENS);
    const twice = new Uint32Array(2 * BLOCK_TOKENS);
    twice.set(block);
    twice.set(block, BLOCK_TOKENS);
    const [first, second] = keysOf(locals(twice));
    expect(first).toBe(second);
    const [firstInChain, secondInChain] = keysOf(sequenceHashes(twice, BLOCK_TOKENS));
    expect(firstInChain).not.toBe(secondInChain);
  });

  it("lets every token enter both lanes", () => {
    const tokens = randomTokens(new Rng(3), 64);
    const [lo, hi] = locals(tokens, 64);
    for (let position = 0; position < 64; position++) {
      const other = tokens.slice();
      other[position] ^= 1;
      const [otherLo, otherHi] = locals(other, 64);
      expect(otherLo).not.toBe(lo);
      expect(otherHi).not.toBe(hi);
    }
  });

  it("flips about half of all bits when one bit of one token changes", () => {
    const rng = new Rng(4);
    let flipped = 0;
    const rounds = 2000;
    for (let round = 0; round < rounds; round++) {
      const tokens = randomTokens(rng, BLOCK_TOKENS);
      const other = tokens.slice();
      other[rng.below(BLOCK_TOKENS)] ^= 1 << rng.below(17);
      const [a, b] = [sequenceHashes(tokens, BLOCK_TOKENS), sequenceHashes(other, BLOCK_TOKENS)];
      flipped += bitCount(a[0] ^ b[0]) + bitCount(a[1] ^ b[1]);
    }
    expect(flipped / rounds).toBeGreaterThan(30);
    expect(flipped / rounds).toBeLessThan(34);
  });

  it.each([
    ["random tokens", (rng: Rng): Uint32Array => randomTokens(rng, BLOCK_TOKENS)],
    [
      "counting tokens",
      (_rng: Rng, i: number): Uint32Array => Uint32Array.from({ length: BLOCK_TOKENS }, (_, k) => i + k),
    ],
    [
      "one token that differs",
      (_rng: Rng, i: number): Uint32Array => new Uint32Array(BLOCK_TOKENS).fill(7).fill(i, 9, 10),
    ],
    ["tokens from a tiny vocabulary", (rng: Rng): Uint32Array => randomTokens(rng, BLOCK_TOKENS, 6)],
  ])("spreads %s evenly over every byte of both lanes", (_name, make) => {
    const rng = new Rng(5);
    const hashes = Array.from({ length: 40_000 }, (_, i) => sequenceHashes(make(rng, i), BLOCK_TOKENS));
    for (const lane of [0, 1]) {
      for (const shift of [0, 8, 16, 24]) {
        const score = chiSquared(hashes.map((hash) => hash[lane] >>> shift));
        // Six standard deviations either way.
        expect(score).toBeGreaterThan(120);
        expect(score).toBeLessThan(391);
      }
    }
  });

  it("does not collide over 400,000 similar blocks, in 64 bits, and no more than chance allows in one lane", () => {
    const keys = new Set<string>();
    const low = new Set<number>();
    const count = 400_000;
    const tokens = new Uint32Array(BLOCK_TOKENS);
    for (let i = 0; i < count; i++) {
      // Two small counters in a block of zeros: the kind of input weak hashes fold together.
      tokens[3] = i % 1000;
      tokens[11] = Math.floor(i / 1000);
      const hash = sequenceHashes(tokens, BLOCK_TOKENS);
      keys.add(hashText(hash[0], hash[1]));
      low.add(hash[0]);
    }
    expect(keys.size).toBe(count);
    // By chance count² / 2³³ = 18.6 collisions.
    expect(count - low.size).toBeLessThan(60);
  });

  it("does not collide along long chains of one repeated block", () => {
    const sequence = sequenceHashes(new Uint32Array(200_000 * 4).fill(42), 4);
    expect(new Set(keysOf(sequence)).size).toBe(200_000);
  });

  it("separates adapters, salts and images, and tells them apart from one another", () => {
    const tokens = randomTokens(new Rng(6), 2 * BLOCK_TOKENS);
    const identities = [
      {},
      { loraName: "a" },
      { loraName: "b" },
      { cacheSalt: "a" },
      { cacheSalt: "b" },
      { loraName: "a", cacheSalt: "b" },
      { loraName: "b", cacheSalt: "a" },
      { multimodalKeys: [{ block: 0, key: "image" }] },
      { multimodalKeys: [{ block: 0, key: "other" }] },
    ];
    const last = identities.map((identity) => keysOf(sequenceHashes(tokens, BLOCK_TOKENS, identity))[1]);
    expect(new Set(last).size).toBe(identities.length);
  });

  it("separates an image's block and all that follow, not those before", () => {
    const tokens = randomTokens(new Rng(7), 4 * BLOCK_TOKENS);
    const plain = keysOf(sequenceHashes(tokens, BLOCK_TOKENS));
    const seen = keysOf(sequenceHashes(tokens, BLOCK_TOKENS, { multimodalKeys: [{ block: 2, key: "image" }] }));
    expect(plain.map((key, i) => key === seen[i])).toEqual([true, true, false, false]);
    const local = locals(tokens);
    expect(() => addMultimodalKeys(local, [{ block: 99, key: "beyond the end" }])).not.toThrow();
  });

  it("chains in parts as in one go", () => {
    const local = locals(randomTokens(new Rng(8), 10 * BLOCK_TOKENS));
    const whole = new Uint32Array(20);
    chainHashes(local, 10, ROOT_LO, ROOT_HI, whole);
    const parts = new Uint32Array(20);
    chainHashes(local, 4, ROOT_LO, ROOT_HI, parts);
    const rest = new Uint32Array(12);
    chainHashes(local.subarray(8), 6, parts[6], parts[7], rest);
    parts.set(rest, 8);
    expect(parts).toEqual(whole);
  });

  it("prints a hash in 16 digits without rounding it", () => {
    expect(hashText(0xffffffff, 0xdaba_7af1)).toBe("daba7af1ffffffff");
    expect(hashText(1, 0)).toBe("0000000000000001");
  });
});

function bitCount(value: number): number {
  let bits = 0;
  for (let rest = value >>> 0; rest !== 0; rest &= rest - 1) bits++;
  return bits;
}
