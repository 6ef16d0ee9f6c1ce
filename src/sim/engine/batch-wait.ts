import type { EngineLimits, EngineProfile } from "./profile.ts";

/**
 * TensorRT-LLM's batch wait: prompts are held back, while answers are being decoded, until so many of them have come that
 * a step is worth its while, or for so many steps.
 */
export class BatchWait {
  readonly #mostSteps: number;
  readonly #enoughTokens: number;
  #waitedSteps = 0;

  constructor({ batchWaitSteps, batchWaitTokensRatio }: EngineProfile, { maxTokensPerStep }: EngineLimits) {
    this.#mostSteps = batchWaitSteps;
    this.#enoughTokens = batchWaitTokensRatio * maxTokensPerStep;
  }

  /** Tokens of decodes and prompts together from which on a step is not put off. */
  get enoughTokens(): number {
    return this.#enoughTokens;
  }

  /** Whether a step that would have `tokens` tokens leaves its prompts waiting; asked once for every such step. */
  holdsBack(tokens: number): boolean {
    const holds = this.#waitedSteps < this.#mostSteps && tokens < this.#enoughTokens;
    this.#waitedSteps = holds ? this.#waitedSteps + 1 : 0;
    return holds;
  }
}
