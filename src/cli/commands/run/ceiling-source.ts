import type { Nanoseconds } from "../../../core/clock.ts";
import type { MeasurementWindow } from "../../../measure/window.ts";
import { promptBlockHashes } from "../../../workload/prompt-blocks.ts";
import type { RequestEnd, WorkloadRequest, WorkloadSource } from "../../../workload/request.ts";
import { promptWithAnswer } from "../../../workload/session-run.ts";

/**
 * A source that counts what one cache that never forgets would have found: the ceiling for every policy. Prompts and
 * answers of all requests sent before count, warm-up included; shares are those of the window's requests.
 */
export class CeilingSource implements WorkloadSource {
  readonly #source: WorkloadSource;
  readonly #blockTokens: number;
  readonly #window: MeasurementWindow;
  readonly #seen = new Set<number>();
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
    const { count, sequence } = promptBlockHashes(promptWithAnswer(request), this.#blockTokens);
    const promptBlocks = Math.floor(request.promptTokens / this.#blockTokens);
    let hits = 0;
    while (hits < promptBlocks && this.#seen.has(keyOf(sequence, hits))) hits++;
    for (let block = hits; block < count; block++) this.#seen.add(keyOf(sequence, block));
    if (request.arrivalNs >= this.#window.startNs && request.arrivalNs < this.#window.endNs) {
      this.#hitTokens += hits * this.#blockTokens;
      this.#tokens += request.promptTokens;
    }
    return request;
  }

  ended(request: WorkloadRequest, end: RequestEnd): void {
    this.#source.ended(request, end);
  }
}

/** 53 bits of a block's hash: what a number holds, and enough to tell some millions of blocks apart. */
function keyOf(hashes: Uint32Array, block: number): number {
  return hashes[2 * block + 1] * 0x200000 + (hashes[2 * block] & 0x1fffff);
}
