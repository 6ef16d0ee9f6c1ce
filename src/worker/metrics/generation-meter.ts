import { Counter, Histogram, type Registry } from "prom-client";
import { NS_PER_SECOND, type Nanoseconds } from "../../core/clock.ts";

/** One request on its way through the worker. */
export interface GenerationTiming {
  grew(tokens: number, nowNs: Nanoseconds): void;
  finished(nowNs: Nanoseconds): void;
}

/** Up to the minutes that a request takes in an engine that is full. */
const LONG_SECONDS: readonly number[] = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640,
];
const SHORT_SECONDS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5, 5, 10,
];

/** Times of requests as the engine sees them, under vLLM's names. */
export class GenerationMeter {
  readonly #timeToFirstToken: Histogram;
  readonly #interTokenLatency: Histogram;
  readonly #requestLatency: Histogram;
  readonly #ended: Counter<"finished_reason">;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#timeToFirstToken = new Histogram({
      name: "vllm:time_to_first_token_seconds",
      help: "Time to first token in seconds.",
      buckets: [...LONG_SECONDS],
      registers,
    });
    this.#interTokenLatency = new Histogram({
      name: "vllm:inter_token_latency_seconds",
      help: "Time between two tokens of a request in seconds.",
      buckets: [...SHORT_SECONDS],
      registers,
    });
    this.#requestLatency = new Histogram({
      name: "vllm:e2e_request_latency_seconds",
      help: "Time from a request's arrival to its last token in seconds.",
      buckets: [...LONG_SECONDS],
      registers,
    });
    this.#ended = new Counter({
      name: "vllm:request_success_total",
      help: "Requests that have ended, by the reason.",
      labelNames: ["finished_reason"],
      registers,
    });
  }

  /** A request has come. */
  begin(arrivedNs: Nanoseconds, finishReason: string): GenerationTiming {
    let lastNs: Nanoseconds | undefined;
    return {
      grew: (tokens, nowNs) => {
        if (lastNs === undefined) this.#timeToFirstToken.observe((nowNs - arrivedNs) / NS_PER_SECOND);
        else this.#interTokenLatency.observe((nowNs - lastNs) / NS_PER_SECOND);
        // Those that come together with another have no gap before them.
        for (let i = 1; i < tokens; i++) this.#interTokenLatency.observe(0);
        lastNs = nowNs;
      },
      finished: (nowNs) => {
        this.#requestLatency.observe((nowNs - arrivedNs) / NS_PER_SECOND);
        this.#ended.inc({ finished_reason: finishReason });
      },
    };
  }

  /** A client has gone before its answer was whole. */
  aborted(): void {
    this.#ended.inc({ finished_reason: "abort" });
  }
}
