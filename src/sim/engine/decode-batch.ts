import type { Sequence } from "./engine-request.ts";

/**
 * The requests that are being decoded. Each gains a token in every decode step, so nothing is counted per request: what it
 * has follows from the number of the step. Requests are filed by the step, modulo the block size, in which they need a
 * new block, since between two such steps nothing changes but lengths.
 */
export class DecodeBatch {
  readonly #blockTokens: number;
  readonly #byPhase: Sequence[][];
  /** All of them, in no order. */
  readonly #members: Sequence[] = [];
  /** Decode steps so far. */
  step = 0;
  /** Sum of the tokens that the coming step attends to: all in the cache and the new one. */
  contextTokens = 0;
  #nextFinish = Number.POSITIVE_INFINITY;
  #finishIsStale = false;

  constructor(blockTokens: number) {
    this.#blockTokens = blockTokens;
    this.#byPhase = Array.from({ length: blockTokens }, () => []);
  }

  get size(): number {
    return this.#members.length;
  }

  /** The step after which the first request has its last token. */
  get nextFinish(): number {
    if (this.#finishIsStale) {
      let first = Number.POSITIVE_INFINITY;
      const members = this.#members;
      for (let i = 0; i < members.length; i++) if (members[i].finishStep < first) first = members[i].finishStep;
      this.#nextFinish = first;
      this.#finishIsStale = false;
    }
    return this.#nextFinish;
  }

  /** Takes a request whose `computed` and `generated` are exact now. */
  join(sequence: Sequence): void {
    sequence.state = "decoding";
    sequence.joinStep = this.step;
    sequence.finishStep = this.step + sequence.request.outputTokens - sequence.generated;
    sequence.phase = positiveModulo(this.step - sequence.computed, this.#blockTokens);
    const filed = this.#byPhase[sequence.phase];
    let at = filed.length;
    while (at > 0 && filed[at - 1].order > sequence.order) at--;
    filed.splice(at, 0, sequence);
    sequence.memberIndex = this.#members.length;
    this.#members.push(sequence);
    this.contextTokens += sequence.computed + 1;
    if (sequence.finishStep < this.#nextFinish) this.#nextFinish = sequence.finishStep;
  }

  /** Takes a request out and writes down what it has. */
  leave(sequence: Sequence): void {
    const filed = this.#byPhase[sequence.phase];
    filed.splice(filed.indexOf(sequence), 1);
    const steps = this.step - sequence.joinStep;
    sequence.computed += steps;
    sequence.generated += steps;
    const last = this.#members.pop();
    if (last !== undefined && last !== sequence) {
      this.#members[sequence.memberIndex] = last;
      last.memberIndex = sequence.memberIndex;
    }
    this.contextTokens -= sequence.computed + 1;
    if (sequence.finishStep === this.#nextFinish) this.#finishIsStale = true;
  }

  advance(steps: number): void {
    this.step += steps;
    this.contextTokens += steps * this.size;
  }

  generatedOf(sequence: Sequence): number {
    return sequence.generated + this.step - sequence.joinStep;
  }

  computedOf(sequence: Sequence): number {
    return sequence.computed + this.step - sequence.joinStep;
  }

  /** The requests that need a new block in the step `ahead` of the coming one, in the order of the running list. */
  needingBlock(ahead: number): readonly Sequence[] {
    return this.#byPhase[(this.step + ahead) % this.#blockTokens];
  }

  /** How many steps ahead, more than `after` and at most `limit`, somebody needs a block; `limit + 1` if nobody does. */
  nextBoundary(after: number, limit: number): number {
    const blockTokens = this.#blockTokens;
    const last = Math.min(limit, after + blockTokens);
    let phase = (this.step + after) % blockTokens;
    for (let ahead = after + 1; ahead <= last; ahead++) {
      phase = phase + 1 === blockTokens ? 0 : phase + 1;
      if (this.#byPhase[phase].length > 0) return ahead;
    }
    return limit + 1;
  }

  /** How many steps can run, `wanted` at most, if the steps after the first may take `available` blocks together. */
  stepsWithin(available: number, wanted: number): number {
    // Everybody needs one block in as many steps as a block has tokens.
    const rounds = this.size === 0 ? wanted : Math.floor(available / this.size);
    let steps = 1 + rounds * this.#blockTokens;
    let left = available - rounds * this.size;
    for (; steps < wanted; steps++) {
      left -= this.needingBlock(steps).length;
      if (left < 0) return steps;
    }
    return wanted;
  }
}

function positiveModulo(value: number, modulus: number): number {
  const rest = value % modulus;
  return rest < 0 ? rest + modulus : rest;
}
