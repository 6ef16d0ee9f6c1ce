import type { Nanoseconds } from "../../core/clock.ts";
import type { EngineMark } from "../engine/engine-stats.ts";
import type { SimWorker } from "./sim-worker.ts";

/** A part of a run; without an end, up to the last request that is sent. */
export interface MeteredWindow {
  readonly startNs: Nanoseconds;
  readonly endNs: Nanoseconds;
}

/** What a worker did in a part of a run. */
export interface WorkerFigures {
  readonly busyShare: number;
  readonly queueMax: number;
  /** Blocks that requests hold over all, mean of busy time and peak. */
  readonly kvOccupancyMean: number;
  readonly kvOccupancyMax: number;
  readonly evictions: number;
  readonly preemptions: number;
  readonly proposedDrafts: number;
  readonly acceptedDrafts: number;
}

/**
 * Looks at all engines when a window begins and when it ends: what they did before it, while caches filled, and after it,
 * while the last answers were waited for, is not what it measures.
 */
export class WindowMeter {
  readonly #window: MeteredWindow | undefined;
  readonly #workers: readonly SimWorker[];
  #first: readonly EngineMark[] | undefined;
  #last: readonly EngineMark[] = [];
  #lastNs: Nanoseconds = 0;
  /** The edge that comes next. */
  nextNs: Nanoseconds;

  constructor(window: MeteredWindow | undefined, workers: readonly SimWorker[]) {
    this.#window = window;
    this.#workers = workers;
    this.nextNs = window?.startNs ?? Infinity;
  }

  /** Before anything happens at a time that is not before the next edge. */
  passEdges(untilNs: Nanoseconds): void {
    if (this.#window === undefined) return;
    const { startNs, endNs } = this.#window;
    if (this.#first === undefined && untilNs >= startNs) this.#begin(startNs);
    if (endNs <= untilNs && this.#lastNs < endNs) this.#look(endNs);
    this.nextNs = this.#lastNs < endNs && endNs < Infinity ? endNs : Infinity;
  }

  /** A request is sent, which is the last one if no other follows. */
  sent(nowNs: Nanoseconds): void {
    if (this.#window?.endNs === Infinity && this.#first !== undefined) this.#look(nowNs);
  }

  /** What each engine did in the window, or in as much of it as there was when the run ended; undefined without one. */
  figures(endNs: Nanoseconds): WorkerFigures[] | undefined {
    const window = this.#window;
    if (window === undefined) return undefined;
    this.passEdges(endNs);
    if (this.#first === undefined) this.#begin(endNs);
    else if (window.endNs < Infinity && this.#lastNs < window.endNs) this.#look(endNs);
    const windowNs = (window.endNs < Infinity ? window.endNs : this.#lastNs) - window.startNs;
    const first = this.#first ?? [];
    return this.#workers.map(({ engine }, at) =>
      figuresOf(first[at], this.#last[at], windowNs, engine.stats.poolBlocks),
    );
  }

  #begin(nowNs: Nanoseconds): void {
    for (const { engine } of this.#workers) engine.restartMaxima();
    this.#look(nowNs);
    this.#first = this.#last;
  }

  #look(nowNs: Nanoseconds): void {
    this.#lastNs = nowNs;
    this.#last = this.#workers.map(({ engine }) => engine.markAt(nowNs));
  }
}

function figuresOf(first: EngineMark, last: EngineMark, windowNs: Nanoseconds, poolBlocks: number): WorkerFigures {
  const busyNs = last.busyNs - first.busyNs;
  return {
    busyShare: windowNs > 0 ? busyNs / windowNs : 0,
    queueMax: last.maxQueued,
    kvOccupancyMean: busyNs === 0 ? 0 : (last.heldBlockNs - first.heldBlockNs) / busyNs / poolBlocks,
    kvOccupancyMax: last.maxHeldBlocks / poolBlocks,
    evictions: last.evictedBlocks - first.evictedBlocks,
    preemptions: last.preemptions - first.preemptions,
    proposedDrafts: last.proposedDrafts - first.proposedDrafts,
    acceptedDrafts: last.acceptedDrafts - first.acceptedDrafts,
  };
}
