import { NS_PER_SECOND, type Nanoseconds } from "../clock.ts";

/** How fast one replica gives capacity back; 0 is unknown. */
export interface ReplicaDrainRates {
  readonly completionsPerSecond: number;
  readonly prefillTokensPerSecond: number;
  readonly blocksPerSecond: number;
}

/** Long enough to average over whole requests, short enough to follow a change of load. */
const DEFAULT_DRAIN_TIME_CONSTANT_NS: Nanoseconds = 10 * NS_PER_SECOND;

// One completion a moment after the start would otherwise read as thousands per second.
const SHORTEST_WINDOW_SHARE = 0.01;

/**
 * Observed drain rates per replica, exponentially decayed. What was drained and the time it took decay alike, so a rate is
 * right from the first observations on and not only after some time constants. Only time with requests in flight counts:
 * an idle hour says nothing about how fast a replica drains once it is full again, and neither does it wipe what is known.
 */
export class DrainRates {
  readonly #timeConstantNs: Nanoseconds;
  readonly #completions: Float64Array;
  readonly #prefillTokens: Float64Array;
  readonly #blocks: Float64Array;
  readonly #busyNs: Float64Array;
  readonly #updatedNs: Float64Array;
  readonly #busy: Uint8Array;

  constructor(options: { maxReplicas: number; timeConstantNs?: Nanoseconds }) {
    this.#timeConstantNs = options.timeConstantNs ?? DEFAULT_DRAIN_TIME_CONSTANT_NS;
    this.#completions = new Float64Array(options.maxReplicas);
    this.#prefillTokens = new Float64Array(options.maxReplicas);
    this.#blocks = new Float64Array(options.maxReplicas);
    this.#busyNs = new Float64Array(options.maxReplicas);
    this.#updatedNs = new Float64Array(options.maxReplicas);
    this.#busy = new Uint8Array(options.maxReplicas);
  }

  /** Forgets all of a replica. */
  reset(replica: number): void {
    this.#completions[replica] = 0;
    this.#prefillTokens[replica] = 0;
    this.#blocks[replica] = 0;
    this.#busyNs[replica] = 0;
    this.#busy[replica] = 0;
  }

  /** The replica got its first request in flight: its time counts from now on. */
  becameBusy(replica: number, nowNs: Nanoseconds): void {
    this.#busy[replica] = 1;
    this.#updatedNs[replica] = nowNs;
  }

  /** The replica's last request is gone: its time stands still. */
  becameIdle(replica: number, nowNs: Nanoseconds): void {
    this.#advance(replica, nowNs);
    this.#busy[replica] = 0;
  }

  prefillFinished(replica: number, nowNs: Nanoseconds, tokens: number): void {
    this.#advance(replica, nowNs);
    this.#prefillTokens[replica] += tokens;
  }

  requestCompleted(replica: number, nowNs: Nanoseconds, blocks: number): void {
    this.#advance(replica, nowNs);
    this.#completions[replica] += 1;
    this.#blocks[replica] += blocks;
  }

  /** The rates as of now; changes nothing. */
  perSecond(replica: number, nowNs: Nanoseconds): ReplicaDrainRates {
    const x = this.#elapsedNs(replica, nowNs) / this.#timeConstantNs;
    const decay = Math.exp(-x);
    const busyNs = this.#busyNs[replica] * decay - Math.expm1(-x) * this.#timeConstantNs;
    const windowNs = Math.max(busyNs, SHORTEST_WINDOW_SHARE * this.#timeConstantNs);
    const scale = (decay * NS_PER_SECOND) / windowNs;
    return {
      completionsPerSecond: this.#completions[replica] * scale,
      prefillTokensPerSecond: this.#prefillTokens[replica] * scale,
      blocksPerSecond: this.#blocks[replica] * scale,
    };
  }

  #elapsedNs(replica: number, nowNs: Nanoseconds): Nanoseconds {
    return this.#busy[replica] === 0 ? 0 : Math.max(0, nowNs - this.#updatedNs[replica]);
  }

  #advance(replica: number, nowNs: Nanoseconds): void {
    const elapsedNs = this.#elapsedNs(replica, nowNs);
    if (elapsedNs === 0) return;
    const x = elapsedNs / this.#timeConstantNs;
    const decay = Math.exp(-x);
    this.#completions[replica] *= decay;
    this.#prefillTokens[replica] *= decay;
    this.#blocks[replica] *= decay;
    this.#busyNs[replica] = this.#busyNs[replica] * decay - Math.expm1(-x) * this.#timeConstantNs;
    this.#updatedNs[replica] = nowNs;
  }
}
