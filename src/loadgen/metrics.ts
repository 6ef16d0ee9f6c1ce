import { Counter, Gauge, Registry, Summary } from "prom-client";
import { ACCOUNTS } from "../core/accounts.ts";
import { NS_PER_SECOND, type Nanoseconds } from "../core/clock.ts";
import { type RequestRecord, UNAVAILABLE } from "../core/request-record.ts";
import { e2eNs, tpotNs } from "../measure/latencies.ts";
import { type BucketCounts, middleNs } from "../measure/rolling/rolling-distribution.ts";
import type { RollingSlice } from "../measure/rolling/rolling-metrics.ts";
import type { LoadRun } from "./types.ts";

const WINDOW_SECONDS = 60;
/** A window is as old as its oldest part: with twelve of them it is between 55 and 60 seconds. */
const WINDOW_PARTS = 12;
const QUANTILES = [0.5, 0.95, 0.99] as const;

/** What is shown of a run. */
export type ShownRun = Pick<LoadRun, "concurrency" | "rolling" | "accounts" | "clientHealth" | "summary">;

/** The series of a load generator for Prometheus, under the names that the H200 study read them by. */
export class LoadMetrics {
  readonly #registry: Registry = new Registry();
  readonly #ttft: Summary;
  readonly #tpot: Summary;
  readonly #e2e: Summary;

  constructor(run: ShownRun) {
    const summary = (name: string, help: string): Summary =>
      new Summary({
        name,
        help,
        percentiles: [...QUANTILES],
        maxAgeSeconds: WINDOW_SECONDS,
        ageBuckets: WINDOW_PARTS,
        pruneAgedBuckets: false,
        registers: [this.#registry],
      });
    this.#ttft = summary(
      "loadgen_ttft_all_seconds",
      "Time to first token of all requests, from the intended send time",
    );
    this.#tpot = summary("loadgen_tpot_seconds", "Time per output token of completed requests");
    this.#e2e = summary("loadgen_e2e_seconds", "Time to the last token of completed requests");
    this.#addGauges(run);
    this.#addCounters(run);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** The text that Prometheus scrapes. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  firstToken(ttftNs: Nanoseconds): void {
    this.#ttft.observe(Math.max(0, ttftNs) / NS_PER_SECOND);
  }

  ended(record: RequestRecord): void {
    if (record.account !== "completed") return;
    const tpot = tpotNs(record);
    const e2e = e2eNs(record);
    if (tpot !== undefined) this.#tpot.observe(tpot / NS_PER_SECOND);
    if (e2e !== undefined) this.#e2e.observe(Math.max(0, e2e) / NS_PER_SECOND);
  }

  /** What a second brought to another process, instead of the calls above. */
  absorb(slice: RollingSlice): void {
    observeBuckets(this.#ttft, slice.ttft);
    observeBuckets(this.#tpot, slice.tpot);
    observeBuckets(this.#e2e, slice.e2e);
  }

  #addGauges(run: ShownRun): void {
    this.#gauge("loadgen_concurrency", "Conversations that are meant to be under way", () => run.concurrency);
    this.#gauge("loadgen_in_flight", "Requests under way", () => run.rolling().inFlight);
    this.#gauge("loadgen_oldest_in_flight_seconds", "Age of the oldest request under way", () => {
      const { oldestInFlightMs } = run.rolling();
      return (oldestInFlightMs ?? 0) / 1000;
    });
    this.#gauge("loadgen_cache_hit_rate", "Share of prompt tokens found in caches, last 60 s", () => {
      const { cacheHitRate } = run.rolling();
      return cacheHitRate === UNAVAILABLE ? undefined : cacheHitRate;
    });
    this.#gauge("loadgen_client_healthy", "0 if the client is the bottleneck", () =>
      run.clientHealth().recent?.verdict === "bottleneck" ? 0 : 1,
    );
    this.#gauge("loadgen_client_loop_delay_p99_seconds", "How late the client's event loop was, last 5 s", () => {
      const { recent } = run.clientHealth();
      return recent && recent.loopDelayP99Ms / 1000;
    });
    this.#gauge("loadgen_client_schedule_lag_p99_seconds", "How late requests were sent, last 5 s", () => {
      const { recent } = run.clientHealth();
      return recent && recent.scheduleLagP99Ms / 1000;
    });
    const itl = new Gauge({
      name: "loadgen_itl_seconds",
      help: "Gaps between chunks, last 60 s",
      labelNames: ["quantile"],
      registers: [],
      collect() {
        const { p50, p95, p99 } = run.rolling().itlMs;
        this.reset();
        for (const [at, value] of [p50, p95, p99].entries()) {
          if (value !== null) this.set({ quantile: String(QUANTILES[at]) }, value / 1000);
        }
      },
    });
    this.#registry.registerMetric(itl);
  }

  #addCounters(run: ShownRun): void {
    const requests = new Counter({
      name: "loadgen_requests_total",
      help: "Requests by the account they ended in",
      labelNames: ["account"],
      registers: [],
      collect() {
        const accounts = run.accounts();
        this.reset();
        for (const account of ACCOUNTS) if (account !== "unfinished") this.inc({ account }, accounts[account]);
      },
    });
    this.#registry.registerMetric(requests);
    this.#counter("loadgen_offered_total", "Requests that were meant to be sent", () => run.accounts().offered);
    this.#counter(
      "loadgen_output_tokens_total",
      "Tokens received by requests that have ended",
      () => run.summary().totals.outputTokens,
    );
    this.#counter(
      "loadgen_prompt_tokens_total",
      "Tokens of prompts of requests that have ended",
      () => run.summary().totals.promptTokens,
    );
  }

  #gauge(name: string, help: string, read: () => number | undefined): void {
    const gauge = new Gauge({
      name,
      help,
      registers: [],
      collect() {
        const value = read();
        // Absent, because 0 would say something.
        if (value === undefined) this.remove();
        else this.set(value);
      },
    });
    this.#registry.registerMetric(gauge);
  }

  #counter(name: string, help: string, read: () => number): void {
    const counter = new Counter({
      name,
      help,
      registers: [],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
    this.#registry.registerMetric(counter);
  }
}

function observeBuckets(summary: Summary, pairs: BucketCounts): void {
  for (let i = 0; i < pairs.length; i += 2) {
    for (let count = 0; count < pairs[i + 1]; count++) summary.observe(middleNs(pairs[i]) / NS_PER_SECOND);
  }
}
