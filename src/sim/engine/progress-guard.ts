import { WarmpathError } from "../../core/errors.ts";
import type { EngineLimits } from "./profile.ts";

/** Notices an engine that runs step after step and gets nowhere. */
export class ProgressGuard {
  readonly #mostSteps: number;
  #steps = 0;
  #progress = 0;

  /** By default it allows far more steps without a token than any prompts of one pool need. */
  constructor({ poolBlocks, blockTokens, maxTokensPerStep }: EngineLimits, mostFruitlessSteps?: number) {
    this.#mostSteps = mostFruitlessSteps ?? 1000 + 8 * Math.ceil((poolBlocks * blockTokens) / maxTokensPerStep);
  }

  /** After every step, with a number that grows with each token and each request that is over. */
  watch(progress: number): void {
    this.#steps = progress > this.#progress ? 0 : this.#steps + 1;
    this.#progress = progress;
    if (this.#steps <= this.#mostSteps) return;
    throw new WarmpathError("WP_INVALID_STATE", `the engine makes no progress: ${this.#steps} steps without a token`);
  }
}
