import type { Nanoseconds } from "../core/clock.ts";
import { sequenceHashes } from "../core/hash.ts";
import type { KvEvent, ReplicaSnapshot } from "../core/kv-index/types.ts";
import { Engine as TwinCore } from "../sim/engine/engine.ts";
import type { EngineOptions as TwinCoreOptions } from "../sim/engine/engine-options.ts";
import type { EngineStats } from "../sim/engine/engine-stats.ts";
import type { StoredContent } from "../wire/kv-events/engine-encoder.ts";
import { BlockTails } from "./block-tails.ts";
import {
  contextOf,
  type Engine,
  type EngineJob,
  type EngineListener,
  type EngineTicket,
  outputTokensOf,
} from "./engine.ts";
import type { Timer, Timers } from "./timers.ts";

export interface TwinEngineOptions extends Pick<
  TwinCoreOptions,
  "profile" | "limits" | "timer" | "speculation" | "incarnation"
> {
  readonly timers: Timers;
  /** Left out, the engine makes no events. `content` is what stored blocks consist of, for wires that carry it. */
  readonly publish?: (event: KvEvent, content: StoredContent | undefined) => void;
}

/** A hash is two lanes of four bytes. */
const BYTES_PER_HASH = 8;

/** A job in the engine. */
interface Flight {
  readonly key: number;
  readonly submittedNs: Nanoseconds;
  readonly listener: EngineListener;
  /** Tokens that reports of growth add up to, those that are known to be there, and of those what its listener knows. */
  reported: number;
  generated: number;
  told: number;
  end: { readonly cachedTokens: number; readonly queuedNs: Nanoseconds } | undefined;
}

/** What the engine is doing at the moment. */
export interface EngineLoad {
  readonly running: number;
  readonly waiting: number;
  readonly heldBlocks: number;
  readonly poolBlocks: number;
}

/**
 * The twin's engine under a clock that passes by itself. Steps begin and end at the engine's own exact times, however late
 * a timer rings: lateness never adds up, and any number of streams needs one timer. What several steps brought since the
 * last time anybody looked is told in one piece.
 */
export class TwinEngine implements Engine {
  readonly #core: TwinCore;
  readonly #options: TwinEngineOptions;
  readonly #tails: BlockTails | undefined;
  readonly #flights = new Map<number, Flight>();
  /** Flights with something to tell. */
  readonly #touched = new Set<Flight>();
  /** Whole contexts behind the hashes of events, found by the memory that the hashes lie in. */
  readonly #contexts = new WeakMap<ArrayBufferLike, StoredContent>();
  #stepBeganNs: Nanoseconds = 0;
  #timer: Timer | undefined;
  #timerNs: Nanoseconds = -1;
  #nextKey = 0;
  #isTelling = false;

  constructor(options: TwinEngineOptions) {
    this.#options = options;
    const { profile, limits, timer, speculation, incarnation } = options;
    this.#core = new TwinCore({
      profile,
      limits,
      timer,
      incarnation,
      ...(speculation === undefined ? {} : { speculation }),
      kvEvents: options.publish !== undefined,
      // Every step must be told when it ends, so nothing is gained by running several together.
      coalesce: false,
      growth: "step",
      tokenTimes: false,
    });
    if (profile.partialReuse) this.#tails = new BlockTails(limits.blockTokens, limits.poolBlocks);
  }

  get load(): EngineLoad {
    const { running, queued: waiting, heldBlocks } = this.#core;
    return { running, waiting, heldBlocks, poolBlocks: this.#core.stats.poolBlocks };
  }

  get stats(): EngineStats {
    return this.#core.stats;
  }

  /** Time spent in steps, the one under way included. */
  busyNs(nowNs: Nanoseconds): number {
    const { stats, isStepping, endNs } = this.#core;
    return stats.busyNs + (isStepping ? Math.max(0, Math.min(nowNs, endNs) - this.#stepBeganNs) : 0);
  }

  submit(job: EngineJob, listener: EngineListener): EngineTicket {
    const { timers, limits } = this.#options;
    const nowNs = timers.nowNs();
    this.#advanceTo(nowNs);
    const context = contextOf(job);
    const sequence = sequenceHashes(context, limits.blockTokens, job.identity);
    if (this.#options.publish !== undefined) {
      this.#contexts.set(sequence.buffer, { tokens: context, ...(job.identity && { identity: job.identity }) });
    }
    const flight: Flight = {
      key: this.#nextKey++,
      submittedNs: nowNs,
      listener,
      reported: 0,
      generated: 0,
      told: 0,
      end: undefined,
    };
    const outputTokens = outputTokensOf(job);
    const continuesTokens = this.#tails?.reach(job.promptTokens, sequence) ?? 0;
    const refusal = this.#core.submit(
      {
        key: flight.key,
        promptTokens: job.promptTokens.length,
        outputTokens,
        ...(job.maxOutputTokens !== undefined && { maxOutputTokens: job.maxOutputTokens }),
        sequence,
        continuesTokens,
      },
      nowNs,
    );
    if (refusal === undefined) {
      this.#flights.set(flight.key, flight);
      // The last token is sampled and never computed, so it is not in the cache.
      this.#tails?.leave(context, sequence, job.promptTokens.length + outputTokens - 1);
    } else listener.refused(refusal);
    this.#settle(nowNs);
    return { cancel: () => this.#cancel(flight) };
  }

  snapshot(): ReplicaSnapshot {
    const nowNs = this.#options.timers.nowNs();
    this.#advanceTo(nowNs);
    const snapshot = this.#core.snapshot(nowNs);
    this.#settle(nowNs);
    return snapshot;
  }

  /** Empties the cache but for what running requests hold; whoever follows it hears of every block. */
  forgetCache(): void {
    const nowNs = this.#options.timers.nowNs();
    this.#advanceTo(nowNs);
    this.#core.forgetUnheld(nowNs);
    this.#tails?.clear();
    this.#settle(nowNs);
  }

  /** Stops for good: no timer is left behind and no listener hears anything more. */
  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#flights.clear();
    this.#touched.clear();
  }

  #cancel(flight: Flight): void {
    if (!this.#flights.delete(flight.key)) return;
    this.#touched.delete(flight);
    const nowNs = this.#options.timers.nowNs();
    this.#advanceTo(nowNs);
    this.#core.cancel(flight.key, nowNs);
    this.#settle(nowNs);
  }

  /** Ends every step that is over by now and begins the next at the moment the last one ended. */
  #advanceTo(nowNs: Nanoseconds): void {
    const core = this.#core;
    while (core.isStepping && core.endNs <= nowNs) {
      const { endNs } = core;
      core.endStep(endNs);
      this.#collect();
      this.#begin(endNs);
    }
  }

  #begin(nowNs: Nanoseconds): void {
    if (this.#core.beginStep(nowNs) !== undefined) this.#stepBeganNs = nowNs;
  }

  /** Begins a step if none is under way, tells what has come of the others, and waits for the next end. */
  #settle(nowNs: Nanoseconds): void {
    const core = this.#core;
    if (!core.isStepping) this.#begin(nowNs);
    this.#collect();
    this.#waitFor(core.isStepping ? core.endNs : undefined);
    this.#tell();
  }

  #waitFor(endNs: Nanoseconds | undefined): void {
    if (endNs === this.#timerNs && this.#timer !== undefined) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (endNs === undefined) return;
    this.#timerNs = endNs;
    this.#timer = this.#options.timers.at(endNs, () => {
      this.#timer = undefined;
      const nowNs = this.#options.timers.nowNs();
      this.#advanceTo(nowNs);
      this.#settle(nowNs);
    });
  }

  /** Takes over what the engine has let out. */
  #collect(): void {
    const { firstTokens, growth, finished, kvEvents } = this.#core.effects;
    for (const { event } of kvEvents) this.#publish(event);
    for (const { key } of firstTokens) this.#grow(key, 0, 1);
    for (const { key, tokens } of growth) this.#grow(key, tokens, 0);
    for (const { key, outputTokens, cachedTokens, admittedNs } of finished) {
      const flight = this.#grow(key, 0, outputTokens);
      if (flight === undefined) continue;
      flight.end = { cachedTokens, queuedNs: Math.max(0, admittedNs - flight.submittedNs) };
      this.#flights.delete(key);
    }
    for (const effects of [kvEvents, firstTokens, growth, finished]) if (effects.length > 0) effects.length = 0;
  }

  /** Growth reports the first token together with the second, the engine's signal of it comes at once. */
  #grow(key: number, more: number, atLeast: number): Flight | undefined {
    const flight = this.#flights.get(key);
    if (flight === undefined) return undefined;
    flight.reported += more;
    flight.generated = Math.max(flight.generated, flight.reported, atLeast);
    this.#touched.add(flight);
    return flight;
  }

  #publish(event: KvEvent): void {
    const { publish, limits } = this.#options;
    if (publish === undefined) return;
    const context = event.kind === "stored" ? this.#contexts.get(event.engine.buffer) : undefined;
    if (event.kind !== "stored" || context === undefined) {
      publish(event, undefined);
      return;
    }
    const { blockTokens } = limits;
    const first = event.engine.byteOffset / BYTES_PER_HASH;
    const tokens = context.tokens.subarray(first * blockTokens, (first + event.engine.length / 2) * blockTokens);
    publish(event, { ...context, tokens });
  }

  /** Listeners may submit and cancel while they are told; whoever is touched thereby is told in the same round. */
  #tell(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    try {
      for (const flight of this.#touched) {
        this.#touched.delete(flight);
        const tokens = flight.generated - flight.told;
        flight.told = flight.generated;
        if (tokens > 0) flight.listener.grew(tokens);
        const { end } = flight;
        if (end !== undefined) flight.listener.finished(end.cachedTokens, end.queuedNs);
      }
    } finally {
      this.#isTelling = false;
    }
  }
}
