/** What an engine has done so far. */
export interface EngineStats {
  readonly steps: number;
  /** Decode steps are run together where nothing can come in between; this is how often the engine was really run. */
  readonly runs: number;
  readonly busyNs: number;
  /** Means over busy time. */
  readonly meanRunning: number;
  readonly meanHeldBlocks: number;
  readonly maxRunning: number;
  readonly maxQueued: number;
  readonly maxHeldBlocks: number;
  readonly poolBlocks: number;
  readonly evictedBlocks: number;
  readonly preemptions: number;
  /** Prompt tokens of admitted requests, each counted once, and those of them found in the cache. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** Tokens computed as prompts, again after a preemption too. */
  readonly prefillTokens: number;
  readonly outputTokens: number;
  readonly finished: number;
  readonly rejected: number;
  /** Drafts of the small model that were verified, and the share of them that was accepted; 0 without speculation. */
  readonly proposedDrafts: number;
  readonly acceptanceRate: number;
}

/** What an engine has done by a moment, and the largest it has seen since its maxima were restarted. */
export interface EngineMark {
  readonly busyNs: number;
  /** Blocks held times the busy time they were held for. */
  readonly heldBlockNs: number;
  readonly maxQueued: number;
  readonly maxHeldBlocks: number;
  readonly evictedBlocks: number;
  readonly preemptions: number;
  readonly proposedDrafts: number;
  readonly acceptedDrafts: number;
}

const LIMB = 2 ** 50;

/** A sum of integers that stays exact beyond 2^53, so that it does not depend on how time was cut. */
export class ExactSum {
  #high = 0;
  #low = 0;

  /** Carries every time, mostly nothing: a branch that is first taken late in a run would void the code around it. */
  add(value: number): void {
    const low = this.#low + value;
    const carried = Math.floor(low / LIMB);
    this.#high += carried;
    this.#low = low - carried * LIMB;
  }

  get value(): number {
    return this.#high * LIMB + this.#low;
  }
}

/** Running totals behind `EngineStats`; the engine writes, nobody else. */
export class EngineTotals {
  steps = 0;
  runs = 0;
  busyNs = 0;
  maxRunning = 0;
  maxQueued = 0;
  maxHeldBlocks = 0;
  preemptions = 0;
  promptTokens = 0;
  cachedTokens = 0;
  prefillTokens = 0;
  outputTokens = 0;
  finished = 0;
  rejected = 0;
  proposedDrafts = 0;
  acceptedDrafts = 0;
  readonly #runningNs = new ExactSum();
  readonly #heldNs = new ExactSum();
  /** The largest before maxima were restarted. */
  #earlierQueued = 0;
  #earlierHeldBlocks = 0;

  /** Some busy time in which nothing changed. */
  spent(ns: number, running: number, heldBlocks: number): void {
    this.busyNs += ns;
    this.#runningNs.add(running * ns);
    this.#heldNs.add(heldBlocks * ns);
    if (running > this.maxRunning) this.maxRunning = running;
    if (heldBlocks > this.maxHeldBlocks) this.maxHeldBlocks = heldBlocks;
  }

  /** With `ns` of a step under way, in which so many blocks are held. */
  mark(ns: number, heldBlocks: number, evictedBlocks: number): EngineMark {
    return {
      busyNs: this.busyNs + ns,
      heldBlockNs: this.#heldNs.value + heldBlocks * ns,
      maxQueued: this.maxQueued,
      maxHeldBlocks: ns > 0 ? Math.max(this.maxHeldBlocks, heldBlocks) : this.maxHeldBlocks,
      evictedBlocks,
      preemptions: this.preemptions,
      proposedDrafts: this.proposedDrafts,
      acceptedDrafts: this.acceptedDrafts,
    };
  }

  restartMaxima(queued: number): void {
    this.#earlierQueued = Math.max(this.#earlierQueued, this.maxQueued);
    this.#earlierHeldBlocks = Math.max(this.#earlierHeldBlocks, this.maxHeldBlocks);
    this.maxQueued = queued;
    this.maxHeldBlocks = 0;
  }

  snapshot(poolBlocks: number, evictedBlocks: number): EngineStats {
    const busy = this.busyNs === 0 ? 1 : this.busyNs;
    return {
      steps: this.steps,
      runs: this.runs,
      busyNs: this.busyNs,
      meanRunning: this.#runningNs.value / busy,
      meanHeldBlocks: this.#heldNs.value / busy,
      maxRunning: this.maxRunning,
      maxQueued: Math.max(this.maxQueued, this.#earlierQueued),
      maxHeldBlocks: Math.max(this.maxHeldBlocks, this.#earlierHeldBlocks),
      poolBlocks,
      evictedBlocks,
      preemptions: this.preemptions,
      promptTokens: this.promptTokens,
      cachedTokens: this.cachedTokens,
      prefillTokens: this.prefillTokens,
      outputTokens: this.outputTokens,
      finished: this.finished,
      rejected: this.rejected,
      proposedDrafts: this.proposedDrafts,
      acceptanceRate: this.proposedDrafts === 0 ? 0 : this.acceptedDrafts / this.proposedDrafts,
    };
  }
}
