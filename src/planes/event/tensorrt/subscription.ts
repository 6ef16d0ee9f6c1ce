import type { KvChange } from "../../../core/kv-index/types.ts";
import { TensorRtDecoder, type TensorRtEvent } from "../../../wire/kv-events/tensorrt-decoder.ts";
import type { EventListener, EventSubscription } from "../types.ts";
import type { EnginePoll, Tally } from "./engine-poll.ts";

export interface TensorRtSubscriptionOptions {
  readonly poll: EnginePoll;
  readonly listener: EventListener;
  readonly blockTokens: number;
  readonly dpRank: number;
  readonly tally: Tally;
}

/** An event that changes nothing still has a number. */
const NO_CHANGE: KvChange = { kind: "removed", engine: new Uint32Array(0), tier: "device" };

/** One rank of one engine. Numbers only go up while an engine lives, so one that was passed before is another life's. */
export class TensorRtSubscription implements EventSubscription {
  readonly #options: TensorRtSubscriptionOptions;
  readonly #stop: () => void;
  readonly #decoder: TensorRtDecoder;
  #lives = 0;
  #lastEventId = -1;
  #isCatchingUp = false;
  #isClosed = false;

  constructor(options: TensorRtSubscriptionOptions) {
    this.#options = options;
    const { blockTokens, dpRank } = options;
    this.#decoder = new TensorRtDecoder({ blockTokens, dpRank });
    this.#stop = options.poll.listen({ answered: (text) => this.#answered(text) });
  }

  /** What was told once is not told again, and the plane says so: nobody asks. */
  replay(): void {
    queueMicrotask(() => {
      if (!this.#isClosed) this.#options.listener.replayUnavailable();
    });
  }

  resync(): void {}

  /** The next answer holds all that the engine has kept. */
  catchUp(): void {
    this.#isCatchingUp = true;
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#stop();
    return Promise.resolve();
  }

  #answered(text: string): void {
    if (this.#isClosed) return;
    const { tally, listener } = this.#options;
    const answer = this.#decoder.decode(text);
    if (answer === undefined) {
      tally.undecodable++;
      return;
    }
    tally.undecodable += answer.undecodable;
    tally.ignored += answer.ignored;
    for (const event of answer.events) this.#deliver(event);
    if (!this.#isCatchingUp) return;
    this.#isCatchingUp = false;
    listener.caughtUp();
  }

  #deliver({ eventId, changes }: TensorRtEvent): void {
    if (eventId <= this.#lastEventId) this.#lives++;
    this.#lastEventId = eventId;
    const [first = NO_CHANGE, ...more] = changes;
    this.#options.tally.events++;
    const incarnation = `life ${this.#lives}`;
    this.#options.listener.event({ ...first, incarnation, eventId, ...(more.length > 0 && { more }) });
  }
}
