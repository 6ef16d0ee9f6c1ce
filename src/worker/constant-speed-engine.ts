import { NS_PER_MS, type Nanoseconds } from "../core/clock.ts";
import { fullBlocks, sequenceHashes } from "../core/hash.ts";
import type { KvEvent, KvEventBody, ReplicaSnapshot } from "../core/kv-index/types.ts";
import {
  contextOf,
  type Engine,
  type EngineJob,
  type EngineListener,
  type EngineTicket,
  outputTokensOf,
} from "./engine.ts";
import { PrefixCache } from "./prefix-cache.ts";
import type { Timer, Timers } from "./timers.ts";

const NS_PER_US = 1000;

export interface ConstantSpeedEngineOptions {
  readonly timers: Timers;
  readonly blockTokens: number;
  readonly kvBlocks: number;
  readonly batchSlots: number;
  readonly prefillUsPerToken: number;
  readonly decodeMsPerToken: number;
  /** Names this life of the engine; a restarted one has another. */
  readonly incarnation: string;
  readonly publish: (event: KvEvent) => void;
}

interface RunningJob {
  readonly job: EngineJob;
  readonly listener: EngineListener;
  /** Blocks of prompt and answer together. */
  readonly sequence: Uint32Array;
  cachedTokens: number;
  /** Leading blocks that the job has pinned. */
  heldBlocks: number;
  nextToken: number;
  dueNs: Nanoseconds;
  timer: Timer | undefined;
}

/**
 * The smallest engine that rewards cache-aware routing: one prompt at a time is computed, at a constant speed and without
 * what is cached; any number of answers, up to the batch slots, are decoded side by side. Batching slows nothing down,
 * which real engines cannot say of themselves.
 */
export class ConstantSpeedEngine implements Engine {
  readonly #options: ConstantSpeedEngineOptions;
  readonly #cache: PrefixCache;
  readonly #waiting: RunningJob[] = [];
  readonly #running = new Set<RunningJob>();
  #prefilling: RunningJob | undefined;
  #lastEventId = -1;

  constructor(options: ConstantSpeedEngineOptions) {
    this.#options = options;
    this.#cache = new PrefixCache(options.kvBlocks, (event) => this.#publish(event));
  }

  submit(job: EngineJob, listener: EngineListener): EngineTicket {
    const running: RunningJob = {
      job,
      listener,
      sequence: sequenceHashes(contextOf(job), this.#options.blockTokens, job.identity),
      cachedTokens: 0,
      heldBlocks: 0,
      nextToken: 0,
      dueNs: 0,
      timer: undefined,
    };
    this.#waiting.push(running);
    this.#startNext();
    return { cancel: () => this.#cancel(running) };
  }

  snapshot(): ReplicaSnapshot {
    const { incarnation } = this.#options;
    return { incarnation, lastEventId: this.#lastEventId, runs: this.#cache.snapshot() };
  }

  #startNext(): void {
    const { timers, batchSlots, blockTokens, prefillUsPerToken } = this.#options;
    if (this.#prefilling !== undefined || this.#running.size >= batchSlots) return;
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#prefilling = next;
    this.#running.add(next);
    const { length } = next.job.promptTokens;
    next.heldBlocks = this.#cache.acquire(next.sequence, fullBlocks(length, blockTokens));
    // The last token is computed even if it is cached: the first answer token comes out of it.
    next.cachedTokens = Math.max(0, Math.min(next.heldBlocks * blockTokens, length - 1));
    next.dueNs = timers.nowNs() + Math.round((length - next.cachedTokens) * prefillUsPerToken * NS_PER_US);
    next.timer = timers.at(next.dueNs, () => this.#prefilled(next));
  }

  #prefilled(running: RunningJob): void {
    this.#prefilling = undefined;
    this.#holdUpTo(running, running.job.promptTokens.length);
    this.#step(running);
    this.#startNext();
  }

  #step(running: RunningJob): void {
    const { timers, decodeMsPerToken } = this.#options;
    const { job, listener } = running;
    running.nextToken++;
    this.#holdUpTo(running, job.promptTokens.length + running.nextToken);
    const isLast = running.nextToken >= outputTokensOf(job);
    if (isLast) this.#leave(running);
    else {
      // From when the token was due and not from now, so that late timers do not add up.
      running.dueNs += Math.round(decodeMsPerToken * NS_PER_MS);
      running.timer = timers.at(running.dueNs, () => this.#step(running));
    }
    listener.grew(1);
    if (!isLast) return;
    listener.finished(running.cachedTokens, 0);
    this.#startNext();
  }

  #holdUpTo(running: RunningJob, contextTokens: number): void {
    const blocks = Math.min(fullBlocks(contextTokens, this.#options.blockTokens), running.sequence.length / 2);
    running.heldBlocks = this.#cache.extend(running.sequence, running.heldBlocks, blocks);
  }

  #cancel(running: RunningJob): void {
    const at = this.#waiting.indexOf(running);
    if (at >= 0) this.#waiting.splice(at, 1);
    if (!this.#running.has(running)) return;
    if (this.#prefilling === running) this.#prefilling = undefined;
    this.#leave(running);
    this.#startNext();
  }

  #leave(running: RunningJob): void {
    running.timer?.cancel();
    this.#running.delete(running);
    this.#cache.release(running.sequence, running.heldBlocks);
  }

  #publish(event: KvEventBody): void {
    const { incarnation, publish } = this.#options;
    publish({ ...event, incarnation, eventId: ++this.#lastEventId, tier: "device" });
  }
}
