import { Counter, Histogram, type Registry } from "prom-client";
import { NS_PER_SECOND, type Nanoseconds } from "../../core/clock.ts";

/** One request on its way through the worker. It ends once: whatever is told after that is not counted. */
export interface GenerationTiming {
  grew(tokens: number, nowNs: Nanoseconds): void;
  /** `queuedNs` is how long it waited for a place in the batch. */
  finished(nowNs: Nanoseconds, queuedNs: Nanoseconds): void;
  /** The engine never took it, so it is none of its requests. */
  refused(): void;
  /** It has ended before its answer was whole. */
  aborted(): void;
}

/** Up to the minutes that a request takes in an engine that is full. */
const LONG_SECONDS: readonly number[] = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640,
];
const SHORT_SECONDS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5, 5, 10,
];

const TOKENS: readonly number[] = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000,
];

/** What is known of a request when it comes. */
export interface MeteredRequest {
  readonly finishReason: string;
  readonly promptTokens: number;
}

/** Times of requests as the engine sees them, under vLLM's names. */
export class GenerationMeter {
  readonly #histograms: Histograms;
  readonly #ended: Counter<"finished_reason">;

  constructor(registry: Registry) {
    this.#histograms = histogramsIn(registry);
    this.#ended = new Counter({
      name: "vllm:request_success_total",
      help: "Requests that have ended, by the reason.",
      labelNames: ["finished_reason"],
      registers: [registry],
    });
  }

  /** A request has come. */
  begin(arrivedNs: Nanoseconds, { finishReason, promptTokens }: MeteredRequest): GenerationTiming {
    const all = this.#histograms;
    let firstNs: Nanoseconds | undefined;
    let lastNs = arrivedNs;
    let generated = 0;
    let isOver = false;
    return {
      grew: (tokens, nowNs) => {
        const gapSeconds = (nowNs - lastNs) / NS_PER_SECOND;
        (firstNs === undefined ? all.timeToFirstToken : all.interTokenLatency).observe(gapSeconds);
        // Those that come together with another have no gap before them.
        for (let i = 1; i < tokens; i++) all.interTokenLatency.observe(0);
        firstNs ??= nowNs;
        lastNs = nowNs;
        generated += tokens;
      },
      finished: (nowNs, queuedNs) => {
        if (isOver) return;
        isOver = true;
        const latency = (nowNs - arrivedNs) / NS_PER_SECOND;
        const queued = queuedNs / NS_PER_SECOND;
        const decoding = (nowNs - (firstNs ?? nowNs)) / NS_PER_SECOND;
        all.latency.observe(latency);
        all.queueTime.observe(queued);
        all.inferenceTime.observe(Math.max(0, latency - queued));
        all.prefillTime.observe(Math.max(0, latency - queued - decoding));
        all.decodeTime.observe(decoding);
        all.promptTokens.observe(promptTokens);
        all.generationTokens.observe(generated);
        if (generated > 1) all.timePerToken.observe(decoding / (generated - 1));
        this.#ended.inc({ finished_reason: finishReason });
      },
      refused: () => {
        isOver = true;
      },
      aborted: () => {
        if (isOver) return;
        isOver = true;
        this.#ended.inc({ finished_reason: "abort" });
      },
    };
  }
}

type Histograms = ReturnType<typeof histogramsIn>;

function histogramsIn(registry: Registry) {
  const histogram = (name: string, help: string, buckets: readonly number[]): Histogram =>
    new Histogram({ name: `vllm:${name}`, help, buckets: [...buckets], registers: [registry] });
  return {
    timeToFirstToken: histogram("time_to_first_token_seconds", "From arrival to the first token.", LONG_SECONDS),
    interTokenLatency: histogram("inter_token_latency_seconds", "Between two tokens of a request.", SHORT_SECONDS),
    timePerToken: histogram(
      "request_time_per_output_token_seconds",
      "Time per token of a request after its first.",
      SHORT_SECONDS,
    ),
    latency: histogram("e2e_request_latency_seconds", "From arrival to the last token.", LONG_SECONDS),
    queueTime: histogram("request_queue_time_seconds", "Waiting for a place in the batch.", LONG_SECONDS),
    prefillTime: histogram("request_prefill_time_seconds", "From its place to the first token.", LONG_SECONDS),
    decodeTime: histogram("request_decode_time_seconds", "From the first token to the last.", LONG_SECONDS),
    inferenceTime: histogram("request_inference_time_seconds", "In the batch.", LONG_SECONDS),
    promptTokens: histogram("request_prompt_tokens", "Prompt tokens of a request.", TOKENS),
    generationTokens: histogram("request_generation_tokens", "Tokens generated for a request.", TOKENS),
  };
}
