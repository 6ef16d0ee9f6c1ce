import type { ArmAtLevel } from "./groups.ts";
import { sampleOf } from "./groups.ts";

/**
 * Where the time to the first token went, as means over completed requests; the stages add up to TTFT. What happens on a
 * worker is not told apart by any record, so its own part is bounded: no request can be faster than the fastest one that
 * had at least as many tokens to compute. That much is called prefill, the rest waiting; so waiting is a lower bound.
 */
export interface Anatomy {
  readonly requests: number;
  readonly all: Stages;
  /** Of the slowest twentieth. */
  readonly slowest: Stages;
}

export interface Stages {
  readonly clientMs: number;
  readonly routerMs: number;
  readonly prefillMs: number;
  readonly waitingMs: number;
}

/** Tokens that fall into one step of the table of fastest prefills. */
const STEP_TOKENS = 64;

/** The fastest time on a worker by tokens to compute; arms share it where their workers are alike. */
export class FastestPrefill {
  readonly #fastestMs: number[] = [];
  #isClosed = false;

  add({ evidence }: ArmAtLevel): void {
    for (const { columns } of evidence ?? []) {
      for (let i = 0; i < columns.length; i++) {
        const step = stepOf(columns.promptTokens[i] - columns.cachedTokens[i]);
        const ms = columns.workerMs[i];
        if (step === undefined || Number.isNaN(ms)) continue;
        this.#fastestMs[step] = Math.min(this.#fastestMs[step] ?? Infinity, ms);
      }
    }
    this.#isClosed = false;
  }

  /** Milliseconds that this many tokens took at least; Infinity where nothing is known. */
  of(tokens: number): number {
    this.#close();
    return this.#fastestMs[stepOf(tokens) ?? 0] ?? Infinity;
  }

  /** More tokens cannot be faster, so each step has the least of all from there on. */
  #close(): void {
    if (this.#isClosed) return;
    let least = Infinity;
    for (let step = this.#fastestMs.length - 1; step >= 0; step--) {
      least = Math.min(least, this.#fastestMs[step] ?? Infinity);
      this.#fastestMs[step] = least;
    }
    this.#isClosed = true;
  }
}

/** How long each request waited on its worker at least, one column per cell; NaN where unknown. */
export function waitingMs({ evidence }: ArmAtLevel, fastest: FastestPrefill): Float64Array[] {
  return (evidence ?? []).map(({ columns }) => {
    const waits = new Float64Array(columns.length);
    for (let i = 0; i < columns.length; i++) {
      const own = columns.workerMs[i];
      waits[i] = own - Math.min(own, fastest.of(columns.promptTokens[i] - columns.cachedTokens[i]));
    }
    return waits;
  });
}

/** The anatomy of an arm at a level; undefined where records do not say when requests reached their workers. */
export function anatomyOf(group: ArmAtLevel, fastest: FastestPrefill): Anatomy | undefined {
  if (group.evidence === undefined) return undefined;
  const waits = waitingMs(group, fastest);
  const sample = sampleOf(group.evidence, ({ ttftMs }) => ttftMs);
  const sorted = sample.sorted();
  const slowFromMs = sorted[Math.floor(0.95 * sorted.length)] ?? Infinity;
  const all = new StageSums();
  const slowest = new StageSums();
  for (const [cell, { columns }] of group.evidence.entries()) {
    for (let i = 0; i < columns.length; i++) {
      const waiting = waits[cell][i];
      if (Number.isNaN(waiting)) continue;
      const stages = {
        clientMs: columns.lagMs[i],
        routerMs: columns.routerMs[i],
        prefillMs: columns.workerMs[i] - waiting,
        waitingMs: waiting,
      };
      all.add(stages);
      if (columns.ttftMs[i] >= slowFromMs) slowest.add(stages);
    }
  }
  return all.count === 0 ? undefined : { requests: all.count, all: all.means(), slowest: slowest.means() };
}

class StageSums {
  count = 0;
  readonly #sums = { clientMs: 0, routerMs: 0, prefillMs: 0, waitingMs: 0 };

  add(stages: Stages): void {
    this.count += 1;
    this.#sums.clientMs += stages.clientMs;
    this.#sums.routerMs += stages.routerMs;
    this.#sums.prefillMs += stages.prefillMs;
    this.#sums.waitingMs += stages.waitingMs;
  }

  means(): Stages {
    const mean = (sum: number): number => (this.count === 0 ? 0 : sum / this.count);
    const { clientMs, routerMs, prefillMs, waitingMs: waiting } = this.#sums;
    return { clientMs: mean(clientMs), routerMs: mean(routerMs), prefillMs: mean(prefillMs), waitingMs: mean(waiting) };
  }
}

function stepOf(tokens: number): number | undefined {
  return Number.isNaN(tokens) ? undefined : Math.max(0, Math.floor(tokens / STEP_TOKENS));
}
