import type { Nanoseconds } from "../../../core/clock.ts";
import type { MeasurementWindow } from "../../../measure/window.ts";
import { GrowingBlocks, promptBlockHashes } from "../../../workload/prompt-blocks.ts";
import type { RequestEnd, WorkloadRequest, WorkloadSource } from "../../../workload/request.ts";
import { promptWithAnswer } from "../../../workload/session-run.ts";

/** A conversation under way: its hashes, and how many blocks its last turn has left in the cache. */
interface Conversation {
  readonly hashes: GrowingBlocks;
  blocks: number;
  lastKey: number;
}

/**
 * A source that counts what one cache that never forgets would have found: the ceiling for every policy. Prompts and
 * answers of all requests sent before count, warm-up included; shares are those of the window's requests.
 */
export class CeilingSource implements WorkloadSource {
  readonly #source: WorkloadSource;
  readonly #blockTokens: number;
  readonly #window: MeasurementWindow;
  readonly #seen = new Set<number>();
  /** By session: a turn sends the whole history again, of which every block has been seen. */
  readonly #conversations = new Map<number, Conversation>();
  #hitTokens = 0;
  #tokens = 0;

  constructor(source: WorkloadSource, blockTokens: number, window: MeasurementWindow) {
    this.#source = source;
    this.#blockTokens = blockTokens;
    this.#window = window;
  }

  get abandonedTurns(): number {
    return this.#source.abandonedTurns;
  }

  /** Share of the prompt tokens of the window; undefined if it had none. */
  get ceiling(): number | undefined {
    return this.#tokens === 0 ? undefined : this.#hitTokens / this.#tokens;
  }

  nextDueNs(): Nanoseconds {
    return this.#source.nextDueNs();
  }

  take(): WorkloadRequest {
    const request = this.#source.take();
    const hits = this.#visit(request);
    if (request.arrivalNs >= this.#window.startNs && request.arrivalNs < this.#window.endNs) {
      this.#hitTokens += hits * this.#blockTokens;
      this.#tokens += request.promptTokens;
    }
    return request;
  }

  ended(request: WorkloadRequest, end: RequestEnd): void {
    this.#source.ended(request, end);
  }

  /** Puts the blocks of a prompt and its answer into the cache; returns how many of the prompt's it found there. */
  #visit(request: WorkloadRequest): number {
    const { session, isLastTurn } = request;
    const context = promptWithAnswer(request);
    const known = this.#conversations.get(session);
    const isAlone = known === undefined && isLastTurn;
    const conversation = known ?? { hashes: new GrowingBlocks(this.#blockTokens), blocks: 0, lastKey: 0 };
    const { count, sequence } = isAlone
      ? promptBlockHashes(context, this.#blockTokens)
      : conversation.hashes.extend(context);
    const promptBlocks = Math.floor(request.promptTokens / this.#blockTokens);
    const { blocks } = conversation;
    // A hash stands for all before it: if the last block is the same, so is the history.
    const goesOn = blocks > 0 && blocks <= count && keyOf(sequence, blocks - 1) === conversation.lastKey;
    let hits = goesOn ? Math.min(blocks, promptBlocks) : 0;
    while (hits < promptBlocks && this.#seen.has(keyOf(sequence, hits))) hits++;
    for (let block = goesOn ? Math.max(hits, blocks) : hits; block < count; block++) {
      this.#seen.add(keyOf(sequence, block));
    }
    conversation.blocks = count;
    conversation.lastKey = count === 0 ? 0 : keyOf(sequence, count - 1);
    if (isLastTurn) this.#conversations.delete(session);
    else this.#conversations.set(session, conversation);
    return hits;
  }
}

/** 53 bits of a block's hash: what a number holds, and enough to tell some millions of blocks apart. */
function keyOf(hashes: Uint32Array, block: number): number {
  return hashes[2 * block + 1] * 0x200000 + (hashes[2 * block] & 0x1fffff);
}
