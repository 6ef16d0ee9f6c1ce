import { ACCOUNTS, type Accounting } from "../core/accounts.ts";
import { NS_PER_MS } from "../core/clock.ts";
import { type GapCounts, type RequestRecord, UNAVAILABLE, type Unavailable } from "../core/request-record.ts";
import { AccountCounter } from "../measure/accounting.ts";
import { DurationHistogram } from "../measure/duration-histogram.ts";
import { e2eNs, tpotNs, ttftNs } from "../measure/latencies.ts";
import type { PopulationSummaries } from "../measure/summary.ts";
import { addGaps } from "../measure/token-gaps.ts";

const LATENCIES = ["ttft", "tpot", "itl", "e2e"] as const;

type Latency = (typeof LATENCIES)[number];

/** Different failures that are told apart: servers put numbers and names into what they say, so there may be one for each request. */
const MOST_FAILURES = 100;

/** Totals as plain data, for files and other processes. */
export interface LoadTotalsData {
  readonly accounts: Accounting;
  readonly histograms: Readonly<Record<Latency, GapCounts>>;
  readonly outputTokens: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly cacheKnownPromptTokens: number;
  /** Requests by the worker that answered, by turn, and failures by what was said. */
  readonly workers: Readonly<Record<string, number>>;
  readonly turns: readonly number[];
  readonly failures: Readonly<Record<string, number>>;
}

/**
 * Everything a run has counted, in memory that does not grow with it. Totals of several processes merge into exactly
 * what one would have counted.
 */
export class LoadTotals {
  readonly #accounts: AccountCounter = new AccountCounter();
  readonly #histograms: Readonly<Record<Latency, DurationHistogram>> = {
    ttft: new DurationHistogram(),
    tpot: new DurationHistogram(),
    itl: new DurationHistogram(),
    e2e: new DurationHistogram(),
  };
  readonly #workers = new Map<string, number>();
  readonly #failures = new Map<string, number>();
  readonly #turns: number[] = [];
  #outputTokens = 0;
  #promptTokens = 0;
  #cachedTokens = 0;
  #cacheKnownPromptTokens = 0;

  add(record: RequestRecord): void {
    this.#accounts.add(record.account);
    this.#outputTokens += record.outputTokens;
    this.#promptTokens += record.promptTokens;
    this.#turns[record.turn] = (this.#turns[record.turn] ?? 0) + 1;
    if (record.worker !== undefined) raise(this.#workers, record.worker, 1);
    if (record.observedCachedTokens !== UNAVAILABLE) {
      this.#cachedTokens += record.observedCachedTokens;
      this.#cacheKnownPromptTokens += record.promptTokens;
    }
    const said = record.shedReason?.code ?? record.failure?.message;
    if (said !== undefined) this.#addFailure(record.account, `${record.account}: ${said}`, 1);
    if (record.account !== "completed") return;
    this.#addDuration("ttft", ttftNs(record));
    this.#addDuration("tpot", tpotNs(record));
    this.#addDuration("e2e", e2eNs(record));
    if (record.tokenTimes !== undefined) addGaps(record.tokenTimes, this.#histograms.itl);
  }

  /** Adds what another process has counted. */
  absorb(data: LoadTotalsData): void {
    for (const account of ACCOUNTS) this.#accounts.add(account, data.accounts[account]);
    for (const name of LATENCIES) this.#histograms[name].addGapCounts(data.histograms[name]);
    for (const [worker, count] of Object.entries(data.workers)) raise(this.#workers, worker, count);
    for (const [failure, count] of Object.entries(data.failures)) {
      this.#addFailure(failure.slice(0, failure.indexOf(":")), failure, count);
    }
    for (const [turn, count] of data.turns.entries()) this.#turns[turn] = (this.#turns[turn] ?? 0) + count;
    this.#outputTokens += data.outputTokens;
    this.#promptTokens += data.promptTokens;
    this.#cachedTokens += data.cachedTokens;
    this.#cacheKnownPromptTokens += data.cacheKnownPromptTokens;
  }

  toData(): LoadTotalsData {
    const { ttft, tpot, itl, e2e } = this.#histograms;
    return {
      accounts: this.accounts(),
      histograms: {
        ttft: ttft.toGapCounts(),
        tpot: tpot.toGapCounts(),
        itl: itl.toGapCounts(),
        e2e: e2e.toGapCounts(),
      },
      outputTokens: this.#outputTokens,
      promptTokens: this.#promptTokens,
      cachedTokens: this.#cachedTokens,
      cacheKnownPromptTokens: this.#cacheKnownPromptTokens,
      workers: Object.fromEntries(this.#workers),
      turns: Array.from(this.#turns, (count) => count ?? 0),
      failures: Object.fromEntries(this.#failures),
    };
  }

  /** Requests that have ended, by how; one that is still under way is not in it. */
  accounts(): Accounting {
    return this.#accounts.total();
  }

  /** Tokens received, of requests that did not complete too. */
  get outputTokens(): number {
    return this.#outputTokens;
  }

  get promptTokens(): number {
    return this.#promptTokens;
  }

  /** Share of prompt tokens found in caches, over the requests whose engine said. */
  cacheHitRate(): number | Unavailable {
    return this.#cacheKnownPromptTokens === 0 ? UNAVAILABLE : this.#cachedTokens / this.#cacheKnownPromptTokens;
  }

  /** Requests by the worker that answered them; `unavailable` stands for those whose target does not say. */
  workers(): ReadonlyMap<string, number> {
    return this.#workers;
  }

  /** Requests by turn, the first at 0. */
  turns(): readonly number[] {
    return this.#turns;
  }

  /** What went wrong, as `account: message`, and how often. */
  failures(): ReadonlyMap<string, number> {
    return this.#failures;
  }

  /**
   * A latency in milliseconds over completed and over offered requests, where one that did not complete is +∞. Gaps are
   * those of completed requests, with one of +∞ for each that was cut off.
   */
  latencyMs(name: Latency): PopulationSummaries {
    const { offered, completed } = this.accounts();
    const histogram = this.#histograms[name];
    return { completed: histogram.summary(NS_PER_MS), offered: histogram.summary(NS_PER_MS, offered - completed) };
  }

  #addFailure(account: string, failure: string, count: number): void {
    const isTold = this.#failures.has(failure) || this.#failures.size < MOST_FAILURES;
    raise(this.#failures, isTold ? failure : `${account}: other messages`, count);
  }

  #addDuration(name: Exclude<Latency, "itl">, durationNs: number | undefined): void {
    // Time per token is no whole number; sums of whole ones do not depend on how processes are merged.
    if (durationNs !== undefined) this.#histograms[name].add(Math.round(Math.max(0, durationNs)));
  }
}

function raise(counts: Map<string, number>, name: string, by: number): void {
  counts.set(name, (counts.get(name) ?? 0) + by);
}
