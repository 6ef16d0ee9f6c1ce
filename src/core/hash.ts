/**
 * Block identity.
 *
 * A prompt is cut into full blocks of `blockTokens`. A block's local hash covers its tokens; its sequence hash chains
 * the local hashes of the blocks before it, so equal sequence hashes mean equal prefixes. Both are 64 bits, kept as two
 * u32 lanes `[lo, hi]` at `2 * i` in a Uint32Array: a JavaScript number would silently round them.
 *
 * The function is our own, because measured against xxHash in WebAssembly it is several times faster on 16 to 64 tokens.
 * Tokens are striped over two accumulators per lane, so that four multiplications are under way at once; every token
 * enters both lanes. It is not cryptographic: somebody who crafts a collision can make the router guess a cache hit
 * wrong, but never reads another's cache, since engines key their blocks by hashes of their own.
 */
import { hashString, mix32, mixPair } from "./rng.ts";

const MULTIPLY_A = 0x9e3779b1 | 0;
const MULTIPLY_B = 0x85ebca77 | 0;
const MULTIPLY_C = 0xc2b2ae3d | 0;
const MULTIPLY_D = 0x27d4eb2f;

/** What separates the caches of requests with equal tokens: adapter, tenant and images. */
export interface BlockIdentity {
  readonly loraName?: string;
  readonly cacheSalt?: string;
  /** Content keys of images or audio, by the block in which each begins. */
  readonly multimodalKeys?: readonly MultimodalKey[];
}

export interface MultimodalKey {
  readonly block: number;
  readonly key: string;
}

/** The lanes of a seed, derived from a request's identity; `NO_IDENTITY` for plain text on the base model. */
export interface HashSeed {
  readonly lo: number;
  readonly hi: number;
}

export const NO_IDENTITY: HashSeed = { lo: 0x57a2_9a4d, hi: 0x6c07_b15e };

/** The seed under which a request's blocks are hashed: different adapters and salts never share a block. */
export function hashSeed(identity: BlockIdentity): HashSeed {
  let { lo, hi } = NO_IDENTITY;
  if (identity.loraName !== undefined) {
    lo = mixPair(lo ^ 0x4c6f5241, textLane(identity.loraName, 1));
    hi = mixPair(hi ^ 0x4c6f5241, textLane(identity.loraName, 2));
  }
  if (identity.cacheSalt !== undefined) {
    lo = mixPair(lo ^ 0x53616c74, textLane(identity.cacheSalt, 3));
    hi = mixPair(hi ^ 0x53616c74, textLane(identity.cacheSalt, 4));
  }
  return { lo, hi };
}

/** Number of full blocks in a prompt; the tokens after them have no identity yet. */
export function fullBlocks(tokens: number, blockTokens: number): number {
  return Math.floor(tokens / blockTokens);
}

/** Writes the local hash of each full block of `tokens` to `out` and returns how many blocks there are. */
export function hashBlocks(
  tokens: Uint32Array,
  tokenCount: number,
  blockTokens: number,
  seed: HashSeed,
  out: Uint32Array,
): number {
  const blocks = fullBlocks(tokenCount, blockTokens);
  const quads = blockTokens & ~3;
  for (let block = 0, at = 0; block < blocks; block++) {
    let a0 = seed.lo | 0;
    let a1 = seed.lo ^ MULTIPLY_C;
    let b0 = seed.hi | 0;
    let b1 = seed.hi ^ MULTIPLY_D;
    const quadsEnd = at + quads;
    const end = at + blockTokens;
    // Four tokens a turn: measured 1.15 times as fast as two, and 1.6 times as fast as xor-shift mixing.
    for (; at < quadsEnd; at += 4) {
      const t0 = tokens[at] | 0;
      const t1 = tokens[at + 1] | 0;
      a0 = Math.imul(((a0 << 13) | (a0 >>> 19)) ^ t0, MULTIPLY_A);
      a1 = Math.imul(((a1 << 13) | (a1 >>> 19)) ^ t1, MULTIPLY_B);
      b0 = Math.imul(((b0 << 11) | (b0 >>> 21)) ^ t0, MULTIPLY_C);
      b1 = Math.imul(((b1 << 11) | (b1 >>> 21)) ^ t1, MULTIPLY_D);
      const t2 = tokens[at + 2] | 0;
      const t3 = tokens[at + 3] | 0;
      a0 = Math.imul(((a0 << 13) | (a0 >>> 19)) ^ t2, MULTIPLY_A);
      a1 = Math.imul(((a1 << 13) | (a1 >>> 19)) ^ t3, MULTIPLY_B);
      b0 = Math.imul(((b0 << 11) | (b0 >>> 21)) ^ t2, MULTIPLY_C);
      b1 = Math.imul(((b1 << 11) | (b1 >>> 21)) ^ t3, MULTIPLY_D);
    }
    for (; at < end; at++) {
      const last = tokens[at] | 0;
      a0 = Math.imul(((a0 << 13) | (a0 >>> 19)) ^ last, MULTIPLY_A);
      b0 = Math.imul(((b0 << 11) | (b0 >>> 21)) ^ last, MULTIPLY_C);
    }
    out[2 * block] = mix32(Math.imul(mix32(a0), MULTIPLY_B) + (a1 ^ (a1 >>> 15)) + blockTokens);
    out[2 * block + 1] = mix32(Math.imul(mix32(b0), MULTIPLY_A) + (b1 ^ (b1 >>> 16)) + blockTokens);
  }
  return blocks;
}

/**
 * Gives blocks that hold images or audio an identity of their own. Call between `hashBlocks` and `chainHashes`; the
 * chain then separates every later block too.
 */
export function addMultimodalKeys(local: Uint32Array, keys: readonly MultimodalKey[]): void {
  for (const { block, key } of keys) {
    if (block * 2 + 1 >= local.length) continue;
    local[2 * block] = mixPair(local[2 * block], textLane(key, 5));
    local[2 * block + 1] = mixPair(local[2 * block + 1], textLane(key, 6));
  }
}

/**
 * Chains local hashes into sequence hashes. Reads `count` blocks of `local` and writes `out`, which may be the same
 * array. `parentLo`/`parentHi` is the sequence hash before the first block; `ROOT_LO`/`ROOT_HI` at the start of a prompt.
 */
export function chainHashes(
  local: Uint32Array,
  count: number,
  parentLo: number,
  parentHi: number,
  out: Uint32Array,
): void {
  let lo = parentLo | 0;
  let hi = parentHi | 0;
  for (let i = 0; i < 2 * count; i += 2) {
    const localLo = local[i];
    const localHi = local[i + 1];
    // Each new lane depends on both old lanes and on one local lane of its own, which keeps the step a bijection of the
    // local hash for a fixed parent: the chain adds no collisions between siblings.
    const crossed = Math.imul(hi ^ (lo >>> 15), MULTIPLY_D) ^ lo;
    const turned = Math.imul(lo ^ (hi >>> 13), MULTIPLY_B) + hi;
    lo = Math.imul(crossed ^ localLo, MULTIPLY_A);
    hi = Math.imul((turned + localHi) | 0, MULTIPLY_C);
    lo ^= lo >>> 16;
    hi ^= hi >>> 15;
    out[i] = lo;
    out[i + 1] = hi;
  }
}

/** How many of the first `blocks` of two prompts are the same: hashes are chained, so one in common is all before it. */
export function commonPrefix(a: Uint32Array, b: Uint32Array, blocks: number): number {
  let same = 0;
  let other = Math.min(blocks, a.length >> 1, b.length >> 1) + 1;
  while (other - same > 1) {
    const middle = (same + other) >> 1;
    const isSame = a[2 * middle - 2] === b[2 * middle - 2] && a[2 * middle - 1] === b[2 * middle - 1];
    if (isSame) same = middle;
    else other = middle;
  }
  return same;
}

export const ROOT_LO = 0x2545f491;
export const ROOT_HI = 0x1ce4e5b9;

/** Local and sequence hashes of a prompt in one call, for code that is not on the hot path. */
export function sequenceHashes(tokens: Uint32Array, blockTokens: number, identity: BlockIdentity = {}): Uint32Array {
  const out = new Uint32Array(2 * fullBlocks(tokens.length, blockTokens));
  const blocks = hashBlocks(tokens, tokens.length, blockTokens, hashSeed(identity), out);
  if (identity.multimodalKeys !== undefined) addMultimodalKeys(out, identity.multimodalKeys);
  chainHashes(out, blocks, ROOT_LO, ROOT_HI, out);
  return out;
}

/** A hash as 16 hex digits, for people and for keys of ordinary maps. */
export function hashText(lo: number, hi: number): string {
  return (hi >>> 0).toString(16).padStart(8, "0") + (lo >>> 0).toString(16).padStart(8, "0");
}

function textLane(text: string, lane: number): number {
  return mixPair(hashString(`${lane}:${text}`), text.length + lane);
}
