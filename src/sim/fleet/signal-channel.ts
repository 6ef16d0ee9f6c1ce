import type { Nanoseconds } from "../../core/clock.ts";
import type { Rng } from "../../core/rng.ts";

/** How one kind of message travels from a worker to the router. */
export interface ChannelOptions {
  readonly delayNs: Nanoseconds;
  /** Messages leave together at multiples of this; 0 sends each at once. */
  readonly batchNs: Nanoseconds;
  /** Share of the messages that never arrive. */
  readonly lossShare: number;
}

/** Everything arrives, at once. */
export const IDEAL_CHANNEL: ChannelOptions = { delayNs: 0, batchNs: 0, lossShare: 0 };

/** Says when a message arrives, and whether. */
export class SignalChannel {
  readonly #options: ChannelOptions;
  readonly #rng: Rng;
  #lost = 0;

  constructor(options: ChannelOptions, rng: Rng) {
    this.#options = options;
    this.#rng = rng;
  }

  /** Messages lost so far. */
  get lost(): number {
    return this.#lost;
  }

  get delayNs(): Nanoseconds {
    return this.#options.delayNs;
  }

  /** When a message sent now arrives; Infinity if it is lost. */
  arrivalNs(sentNs: Nanoseconds): Nanoseconds {
    const { delayNs, batchNs, lossShare } = this.#options;
    if (lossShare > 0 && this.#rng.uniform() < lossShare) {
      this.#lost += 1;
      return Number.POSITIVE_INFINITY;
    }
    return (batchNs === 0 ? sentNs : Math.ceil(sentNs / batchNs) * batchNs) + delayNs;
  }
}
