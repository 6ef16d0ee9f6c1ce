import { Counter, Histogram, type Metric, Registry, collectDefaultMetrics } from "prom-client";
import type { Account } from "../../core/accounts.ts";
import type { AttemptEnd, PreparationTimes } from "../decider.ts";
import { LATENCY_BOUNDS_SECONDS, STAGE_BOUNDS_SECONDS } from "./buckets.ts";
import { CountedHistogram } from "./counted-histogram.ts";

/** What is known of a request when it was placed. */
export interface PlacedRequest {
  readonly policy: string;
  readonly promptTokens: number;
  readonly predictedCachedTokens: number;
}

/**
 * What happened to requests, in Prometheus' form: the same series under every policy, with the policy as a label, so that
 * two arms of a comparison are read from the same names.
 */
export class GatewayMetrics {
  readonly registry: Registry = new Registry();
  readonly #offered = this.#counter("requests_offered_total", "Requests that came and were understood.", ["policy"]);
  readonly #ended = this.#counter(
    "requests_ended_total",
    "Requests by the one account they ended in, and why; the accounts and requests_unfinished add up to offered.",
    ["policy", "account", "reason"],
  );
  readonly #invalid = this.#counter("requests_invalid_total", "Requests that were not understood and never offered.", [
    "code",
  ]);
  readonly #retries = this.#counter("retries_total", "Attempts that failed and were tried on another worker.", [
    "policy",
    "reason",
  ]);
  readonly #promptTokens = this.#counter("prompt_tokens_total", "Prompt tokens of requests that were placed.", [
    "policy",
  ]);
  readonly #predicted = this.#counter(
    "predicted_cached_tokens_total",
    "Prompt tokens that were predicted to be cached where the request was placed.",
    ["policy"],
  );
  readonly #observed = this.#counter(
    "observed_cached_tokens_total",
    "Prompt tokens that engines reported as cached, of those requests for which they did.",
    ["policy"],
  );
  readonly #observedPrompts = this.#counter(
    "observed_prompt_tokens_total",
    "Prompt tokens of the requests for which engines reported cached tokens: what observed_cached is a share of.",
    ["policy"],
  );
  readonly #ttft = this.#histogram(
    "time_to_first_token_seconds",
    "From the arrival of a request to its first content.",
    LATENCY_BOUNDS_SECONDS,
    ["policy"],
  );
  readonly #duration = this.#histogram(
    "request_duration_seconds",
    "From the arrival of a request to its end, completed ones alone.",
    LATENCY_BOUNDS_SECONDS,
    ["policy"],
  );
  readonly #queueWait = this.#histogram(
    "queue_wait_seconds",
    "How long placed requests had waited in the router.",
    LATENCY_BOUNDS_SECONDS,
    ["policy"],
  );
  readonly #stages = this.#histogram(
    "decision_stage_seconds",
    "Time taken by each stage of a decision: parse, tokenize, hash, route.",
    STAGE_BOUNDS_SECONDS,
    ["policy", "stage"],
  );
  readonly #eventLag = this.#histogram(
    "event_lag_seconds",
    "From the time an engine put on a batch of KV events to its arrival here.",
    LATENCY_BOUNDS_SECONDS,
    [],
  );
  readonly #gaps = new CountedHistogram(
    "warmpath_inter_token_latency_seconds",
    "Gaps between the tokens of streams.",
    LATENCY_BOUNDS_SECONDS,
  );

  constructor() {
    // The registry only asks a metric for its values; the type wants one of its own classes.
    this.registry.registerMetric(this.#gaps as unknown as Metric);
  }

  /** Adds memory, CPU and event loop of this process. */
  watchProcess(): void {
    // Every 100 ms: looking at the event loop more often costs more than all other watching together.
    collectDefaultMetrics({ register: this.registry, prefix: "warmpath_", eventLoopMonitoringPrecision: 100 });
  }

  text(): Promise<string> {
    return this.registry.metrics();
  }

  offered(policy: string, preparation: PreparationTimes): void {
    this.#offered.inc({ policy });
    this.#stages.observe({ policy, stage: "parse" }, preparation.parseMs / 1000);
    this.#stages.observe({ policy, stage: "tokenize" }, preparation.tokenizeMs / 1000);
    this.#stages.observe({ policy, stage: "hash" }, preparation.hashMs / 1000);
  }

  routed(policy: string, routeMs: number): void {
    this.#stages.observe({ policy, stage: "route" }, routeMs / 1000);
  }

  placed(placed: PlacedRequest, queueWaitMs: number): void {
    const { policy } = placed;
    this.#queueWait.observe({ policy }, queueWaitMs / 1000);
    this.#promptTokens.inc({ policy }, placed.promptTokens);
    this.#predicted.inc({ policy }, placed.predictedCachedTokens);
  }

  retried(policy: string, reason: string): void {
    this.#retries.inc({ policy, reason });
  }

  shed(policy: string, reason: string): void {
    this.#ended.inc({ policy, account: "shed", reason });
  }

  /** A request that the gateway turned away before the router was asked. */
  refused(policy: string, reason: string): void {
    this.#offered.inc({ policy });
    this.shed(policy, reason);
  }

  invalid(code: string): void {
    this.#invalid.inc({ code });
  }

  /** A request has ended; `placed` is what it was last placed with, where it was placed at all. */
  ended(policy: string, placed: PlacedRequest | undefined, end: AttemptEnd): void {
    const account: Account = end.outcome;
    this.#ended.inc({ policy, account, reason: end.fault ?? "" });
    if (end.ttftMs !== undefined) this.#ttft.observe({ policy }, end.ttftMs / 1000);
    if (end.gaps !== undefined) this.#gaps.add(policy, end.gaps);
    if (account === "completed" && end.durationMs !== undefined) {
      this.#duration.observe({ policy }, end.durationMs / 1000);
    }
    if (end.cachedTokens === undefined || placed === undefined) return;
    this.#observed.inc({ policy }, end.cachedTokens);
    this.#observedPrompts.inc({ policy }, placed.promptTokens);
  }

  eventLag(lagMs: number): void {
    this.#eventLag.observe(lagMs / 1000);
  }

  #counter<T extends string>(name: string, help: string, labelNames: readonly T[]): Counter<T> {
    return new Counter({ name: `warmpath_${name}`, help, labelNames, registers: [this.registry] });
  }

  #histogram<T extends string>(
    name: string,
    help: string,
    bounds: readonly number[],
    labelNames: readonly T[],
  ): Histogram<T> {
    return new Histogram({
      name: `warmpath_${name}`,
      help,
      labelNames,
      buckets: [...bounds],
      registers: [this.registry],
    });
  }
}
