import { chainHashes, fullBlocks, NO_IDENTITY, ROOT_HI, ROOT_LO } from "../../core/hash.ts";
import { mixPair } from "../../core/rng.ts";
import { commonPrefixTokens, type Prompt } from "../../workload/prompt.ts";
import { GrowingBlocks, hashPromptBlocks } from "../../workload/prompt-blocks.ts";
import type { WorkloadRequest } from "../../workload/request.ts";
import { promptWithAnswer } from "../../workload/session-run.ts";

/** What identifies a request's blocks. */
export interface RequestBlocks {
  /** Sequence hashes of the full blocks of prompt and answer. */
  readonly sequence: Uint32Array;
  /** Leading prompt tokens that the turn before has put into a cache. */
  readonly continuesTokens: number;
}

interface Session {
  readonly blocks: GrowingBlocks;
  readonly context: Prompt;
  readonly computedTokens: number;
}

/**
 * Hashes of single requests lie in pieces of this many numbers: one allocation for some dozen requests. Larger ones outlive so
 * many requests that their memory is not used again within a run.
 */
const SLAB_NUMBERS = 1 << 13;

/** Hashes prompts with their answers; of a conversation, only what a turn adds. */
export class SessionMemory {
  readonly #blockTokens: number;
  readonly #sessions = new Map<number, Session>();
  #slab = new Uint32Array(SLAB_NUMBERS);
  #slabUsed = 0;

  constructor(blockTokens: number) {
    this.#blockTokens = blockTokens;
  }

  identify(request: WorkloadRequest): RequestBlocks {
    const { session, isLastTurn } = request;
    const before = this.#sessions.get(session);
    if (before === undefined && isLastTurn) return { sequence: this.#hashAlone(request), continuesTokens: 0 };
    const context = promptWithAnswer(request);
    const blocks = before?.blocks ?? new GrowingBlocks(this.#blockTokens);
    const { sequence } = blocks.extend(context);
    const continuesTokens =
      before === undefined ? 0 : Math.min(before.computedTokens, commonPrefixTokens(before.context, request.prompt));
    // The last token of an answer is sampled but never computed.
    const computedTokens = request.promptTokens + request.outputTokens - 1;
    if (isLastTurn) this.#sessions.delete(session);
    else this.#sessions.set(session, { blocks, context, computedTokens });
    return { sequence, continuesTokens };
  }

  /** Of a request that nobody will continue; the blocks of its answer only have to differ from all others. */
  #hashAlone({ prompt, outputTokens, answerId }: WorkloadRequest): Uint32Array {
    const blockTokens = this.#blockTokens;
    const blocks = fullBlocks(prompt.tokens + outputTokens, blockTokens);
    const promptBlocks = fullBlocks(prompt.tokens, blockTokens);
    const numbers = 2 * blocks;
    if (this.#slabUsed + numbers > this.#slab.length) {
      this.#slab = new Uint32Array(Math.max(SLAB_NUMBERS, numbers));
      this.#slabUsed = 0;
    }
    const sequence = this.#slab.subarray(this.#slabUsed, this.#slabUsed + numbers);
    this.#slabUsed += numbers;
    // Local hashes first, then chained where they lie.
    hashPromptBlocks(prompt, 0, promptBlocks, blockTokens, NO_IDENTITY, sequence);
    for (let block = promptBlocks; block < blocks; block++) {
      sequence[2 * block] = mixPair(answerId, block);
      sequence[2 * block + 1] = mixPair(block, answerId);
    }
    chainHashes(sequence, blocks, ROOT_LO, ROOT_HI, sequence);
    return sequence;
  }
}
