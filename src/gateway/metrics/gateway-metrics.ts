import { Registry, collectDefaultMetrics } from "prom-client";
import type { Account } from "../../core/accounts.ts";
import type { AttemptEnd, PreparationTimes } from "../decider.ts";
import { LATENCY_BOUNDS_SECONDS, STAGE_BOUNDS_SECONDS } from "./buckets.ts";
import { CountedHistogram } from "./counted-histogram.ts";
import { register } from "./labelled-series.ts";
import { PlainCounter } from "./plain-counter.ts";

/** What is known of a request when it was placed. */
export interface PlacedRequest {
  readonly policy: string;
  readonly promptTokens: number;
  readonly predictedCachedTokens: number;
}

/** How long the parts of a routing decision took. */
export interface RoutingTimes {
  /** Who may take the request, and how much of it each has cached. */
  readonly matchMs: number;
  /** What the policy thinks of each. */
  readonly scoreMs: number;
  /** Reserving the place and writing the decision down. */
  readonly recordMs: number;
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
  readonly #retriesRefused = this.#counter(
    "retries_refused_total",
    "Failures that were final because the retry budget was used up.",
    ["policy", "reason"],
  );
  readonly #migrations = this.#counter("migrations_total", "Streams that were cut and continued on another worker.", [
    "policy",
    "reason",
  ]);
  readonly #migrationsRefused = this.#counter(
    "migrations_refused_total",
    "Streams that were cut, were to be continued, and could not be.",
    ["policy", "reason"],
  );
  readonly #promptTokens = this.#counter(
    "prompt_tokens_total",
    "Prompt tokens of requests and continuations that were placed.",
    ["policy"],
  );
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
    "Time taken by each stage of a decision: parse, tokenize, hash, match, score, record.",
    STAGE_BOUNDS_SECONDS,
    ["policy", "stage"],
  );
  readonly #eventLag = this.#histogram(
    "event_lag_seconds",
    "From the time an engine put on its KV events to their arrival here.",
    LATENCY_BOUNDS_SECONDS,
    ["policy"],
  );
  readonly #gaps = this.#histogram(
    "inter_token_latency_seconds",
    "Gaps between the tokens of streams.",
    LATENCY_BOUNDS_SECONDS,
    ["policy"],
  );

  /** Adds memory, CPU and event loop of this process. */
  watchProcess(): void {
    // Every 100 ms: looking at the event loop more often costs more than all other watching together.
    collectDefaultMetrics({ register: this.registry, prefix: "warmpath_", eventLoopMonitoringPrecision: 100 });
  }

  text(): Promise<string> {
    return this.registry.metrics();
  }

  offered(policy: string, { parseMs, tokenizeMs, hashMs }: PreparationTimes): void {
    this.#offered.add(1, policy);
    this.#stages.observe(parseMs / 1000, policy, "parse");
    this.#stages.observe(tokenizeMs / 1000, policy, "tokenize");
    this.#stages.observe(hashMs / 1000, policy, "hash");
  }

  routed(policy: string, { matchMs, scoreMs, recordMs }: RoutingTimes): void {
    this.#stages.observe(matchMs / 1000, policy, "match");
    this.#stages.observe(scoreMs / 1000, policy, "score");
    this.#stages.observe(recordMs / 1000, policy, "record");
  }

  /** A request that had waited so long is placed for the first time. */
  waited(policy: string, queueWaitMs: number): void {
    this.#queueWait.observe(queueWaitMs / 1000, policy);
  }

  /** A prompt is placed for the first time: that of a request, or the longer one by which a cut stream goes on. */
  placed({ policy, promptTokens, predictedCachedTokens }: PlacedRequest): void {
    this.#promptTokens.add(promptTokens, policy);
    this.#predicted.add(predictedCachedTokens, policy);
  }

  retried(policy: string, reason: string): void {
    this.#retries.add(1, policy, reason);
  }

  retryRefused(policy: string, reason: string): void {
    this.#retriesRefused.add(1, policy, reason);
  }

  /** A cut stream goes on elsewhere; `reason` is how it was cut. */
  migrated(policy: string, reason: string): void {
    this.#migrations.add(1, policy, reason);
  }

  /** A cut stream cannot go on; `reason` is why not. */
  notMigrated(policy: string, reason: string): void {
    this.#migrationsRefused.add(1, policy, reason);
  }

  shed(policy: string, reason: string): void {
    this.#ended.add(1, policy, "shed", reason);
  }

  /** A request that the gateway turned away before the router was asked. */
  refused(policy: string, reason: string): void {
    this.#offered.add(1, policy);
    this.shed(policy, reason);
  }

  invalid(code: string): void {
    this.#invalid.add(1, code);
  }

  /** A request has ended; `placed` is what it was last placed with, where it was placed at all. */
  ended(policy: string, placed: PlacedRequest | undefined, end: AttemptEnd): void {
    const account: Account = end.outcome;
    this.#ended.add(1, policy, account, end.fault ?? "");
    if (end.ttftMs !== undefined) this.#ttft.observe(end.ttftMs / 1000, policy);
    if (end.gaps !== undefined) this.#gaps.add(end.gaps, policy);
    if (account === "completed" && end.durationMs !== undefined) this.#duration.observe(end.durationMs / 1000, policy);
    if (end.cachedTokens === undefined || placed === undefined) return;
    this.#observed.add(end.cachedTokens, policy);
    this.#observedPrompts.add(placed.promptTokens, policy);
  }

  eventLag(policy: string, lagMs: number): void {
    this.#eventLag.observe(lagMs / 1000, policy);
  }

  #counter(name: string, help: string, labelNames: readonly string[]): PlainCounter {
    const counter = new PlainCounter(`warmpath_${name}`, help, labelNames);
    register(this.registry, counter);
    return counter;
  }

  #histogram(name: string, help: string, bounds: readonly number[], labelNames: readonly string[]): CountedHistogram {
    const histogram = new CountedHistogram(`warmpath_${name}`, help, bounds, labelNames);
    register(this.registry, histogram);
    return histogram;
  }
}
