import { chainHashes, fullBlocks, type HashSeed, NO_IDENTITY, ROOT_HI, ROOT_LO } from "../core/hash.ts";
import { mix32 } from "../core/rng.ts";
import {
  commonPrefixTokens,
  EMPTY_PROMPT,
  type Prompt,
  segmentCount,
  segmentEnd,
  type UniformPrompt,
} from "./prompt.ts";

const OFFSET_A = 0x9e3779b1 | 0;
const OFFSET_B = 0xc2b2ae3d | 0;
const LENGTH_A = 0x85ebca77 | 0;
const LENGTH_B = 0x27d4eb2f;
const TWO_TO_32 = 4_294_967_296;

/** The hashes of a prompt's full blocks, `[lo, hi]` at `2 * block` as everywhere in the core. */
export interface BlockHashes {
  readonly count: number;
  readonly local: Uint32Array;
  readonly sequence: Uint32Array;
}

/** Local and sequence hashes of all full blocks of a prompt. */
export function promptBlockHashes(prompt: Prompt, blockTokens: number, seed: HashSeed = NO_IDENTITY): BlockHashes {
  const count = fullBlocks(prompt.tokens, blockTokens);
  // One buffer for both: making buffers costs more than hashing.
  const lanes = new Uint32Array(4 * count);
  const local = lanes.subarray(0, 2 * count);
  const sequence = lanes.subarray(2 * count);
  hashPromptBlocks(prompt, 0, count, blockTokens, seed, local);
  chainHashes(local, count, ROOT_LO, ROOT_HI, sequence);
  return { count, local, sequence };
}

/**
 * Writes the local hashes of blocks `from` to `to` of a prompt to `out`, each at its own place. A block is identified by
 * the parts of segments that it covers: id, offset and length of each. So equal blocks mean equal tokens at any block
 * size, whether or not it divides the segments. A last block that is not full can be asked for too; trace files name it.
 */
export function hashPromptBlocks(
  prompt: Prompt,
  from: number,
  to: number,
  blockTokens: number,
  seed: HashSeed,
  out: Uint32Array,
): void {
  if (prompt.kind === "uniform" && prompt.segmentTokens % blockTokens === 0 && to * blockTokens <= prompt.tokens) {
    hashAlignedBlocks(prompt, from, to, blockTokens, seed, out);
    return;
  }
  let at = from * blockTokens;
  let segment = segmentAt(prompt, at);
  let start = segment === 0 ? 0 : segmentEnd(prompt, segment - 1);
  let end = 0;
  let idA = 0;
  let idB = 0;
  let isLoaded = false;
  for (let block = from; block < to; block++) {
    const blockEnd = Math.min(at + blockTokens, prompt.tokens);
    let a = seed.lo | 0;
    let b = seed.hi | 0;
    while (at < blockEnd) {
      if (!isLoaded) {
        idA = laneA(prompt.ids[segment]);
        idB = laneB(prompt.ids[segment]);
        end = segmentEnd(prompt, segment);
        isLoaded = true;
      }
      const stop = end < blockEnd ? end : blockEnd;
      const offset = at - start;
      const length = stop - at;
      a = mix32(((a << 13) | (a >>> 19)) ^ (idA + Math.imul(offset, OFFSET_A) + Math.imul(length, LENGTH_A)));
      b = mix32(((b << 11) | (b >>> 21)) ^ (idB + Math.imul(offset, OFFSET_B) + Math.imul(length, LENGTH_B)));
      at = stop;
      if (at === end) {
        segment++;
        start = end;
        isLoaded = false;
      }
    }
    out[2 * block] = a;
    out[2 * block + 1] = b;
  }
}

/** The same for blocks that each lie in one segment, as at any usual block size of a trace, without asking where segments end. */
function hashAlignedBlocks(
  prompt: UniformPrompt,
  from: number,
  to: number,
  blockTokens: number,
  seed: HashSeed,
  out: Uint32Array,
): void {
  const perSegment = prompt.segmentTokens / blockTokens;
  const seedA = (seed.lo << 13) | (seed.lo >>> 19);
  const seedB = (seed.hi << 11) | (seed.hi >>> 21);
  const lengthA = Math.imul(blockTokens, LENGTH_A);
  const lengthB = Math.imul(blockTokens, LENGTH_B);
  const stepA = Math.imul(blockTokens, OFFSET_A);
  const stepB = Math.imul(blockTokens, OFFSET_B);
  let segment = Math.floor(from / perSegment);
  let within = from - segment * perSegment;
  for (let block = from; block < to; segment++, within = 0) {
    const id = prompt.ids[segment];
    const end = Math.min(to, block + perSegment - within);
    let a = (laneA(id) + lengthA + Math.imul(within, stepA)) | 0;
    let b = (laneB(id) + lengthB + Math.imul(within, stepB)) | 0;
    for (; block < end; block++) {
      out[2 * block] = mix32(seedA ^ a);
      out[2 * block + 1] = mix32(seedB ^ b);
      a = (a + stepA) | 0;
      b = (b + stepB) | 0;
    }
  }
}

/** Both halves of an id, which may have more than 32 bits, enter both lanes. */
function laneA(id: number): number {
  return mix32((id | 0) ^ Math.imul(Math.floor(id / TWO_TO_32), OFFSET_B));
}

function laneB(id: number): number {
  return mix32(((id | 0) + 0x3c6ef372) ^ Math.imul(Math.floor(id / TWO_TO_32), OFFSET_A));
}

/**
 * The block hashes of a prompt that grows, as a conversation's does: only blocks behind what is already hashed are
 * computed. Views handed out stay valid and unchanged.
 */
export class GrowingBlocks {
  readonly #blockTokens: number;
  readonly #seed: HashSeed;
  #prompt: Prompt = EMPTY_PROMPT;
  #count = 0;
  #local = new Uint32Array(0);
  #sequence = new Uint32Array(0);

  constructor(blockTokens: number, seed: HashSeed = NO_IDENTITY) {
    this.#blockTokens = blockTokens;
    this.#seed = seed;
  }

  /** The hashes of the prompt now; what it shares with the one before is kept, also where it took another turn. */
  extend(prompt: Prompt): BlockHashes {
    const kept = Math.min(this.#count, fullBlocks(commonPrefixTokens(this.#prompt, prompt), this.#blockTokens));
    const count = fullBlocks(prompt.tokens, this.#blockTokens);
    if (2 * count > this.#local.length || kept < this.#count) this.#reallocate(kept, count);
    hashPromptBlocks(prompt, kept, count, this.#blockTokens, this.#seed, this.#local);
    const parentLo = kept === 0 ? ROOT_LO : this.#sequence[2 * kept - 2];
    const parentHi = kept === 0 ? ROOT_HI : this.#sequence[2 * kept - 1];
    const added = this.#local.subarray(2 * kept, 2 * count);
    chainHashes(added, count - kept, parentLo, parentHi, this.#sequence.subarray(2 * kept, 2 * count));
    this.#prompt = prompt;
    this.#count = count;
    return {
      count,
      local: this.#local.subarray(0, 2 * count),
      sequence: this.#sequence.subarray(0, 2 * count),
    };
  }

  /** Into new memory, so that whoever holds a view of the old still sees what it was given. */
  #reallocate(kept: number, count: number): void {
    const lanes = 2 * Math.ceil(count * 1.25);
    const local = new Uint32Array(lanes);
    const sequence = new Uint32Array(lanes);
    local.set(this.#local.subarray(0, 2 * kept));
    sequence.set(this.#sequence.subarray(0, 2 * kept));
    this.#local = local;
    this.#sequence = sequence;
  }
}

/** The segment that holds a token, by bisection; a long history must not be walked for its last block. */
function segmentAt(prompt: Prompt, token: number): number {
  if (prompt.kind === "uniform") return Math.floor(token / prompt.segmentTokens);
  let low = 0;
  let high = segmentCount(prompt);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (prompt.ends[middle] <= token) low = middle + 1;
    else high = middle;
  }
  return low;
}
