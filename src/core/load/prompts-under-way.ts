import type { Reservation } from "./activity-list.ts";

/**
 * The prompts that each replica is still to compute. Whatever else is expected in its cache is there: the prompts that brought it
 * have had their first tokens, whether events have said so, will say so or got lost.
 */
export class PromptsUnderWay {
  readonly #prompts: Reservation[][];

  constructor(maxReplicas: number) {
    this.#prompts = Array.from({ length: maxReplicas }, () => []);
  }

  add(prompt: Reservation): void {
    this.#prompts[prompt.replica].push(prompt);
  }

  remove(prompt: Reservation): void {
    const prompts = this.#prompts[prompt.replica];
    // Engines take prompts in the order they come, so it is among the first.
    const at = prompts.indexOf(prompt);
    if (at >= 0) prompts.splice(at, 1);
  }

  clearReplica(replica: number): void {
    this.#prompts[replica].length = 0;
  }

  /** Those of one replica. */
  at(replica: number): readonly Reservation[] {
    return this.#prompts[replica];
  }

  /** How many of the first `blocks` of a prompt none of those under way is to compute. */
  settledBlocks(replica: number, sequence: Uint32Array, blocks: number): number {
    let settled = blocks;
    for (const { sequence: other, cachedBlocks: first } of this.#prompts[replica]) {
      if (first < settled && isSameBlock(sequence, other, first)) settled = first;
    }
    return settled;
  }
}

/** Hashes are chained: prompts that have one in common are alike up to there. One that is too short has none. */
function isSameBlock(a: Uint32Array, b: Uint32Array, block: number): boolean {
  return a[2 * block] === b[2 * block] && a[2 * block + 1] === b[2 * block + 1];
}
