import { NS_PER_MS } from "../core/clock.ts";
import type { RequestRecord } from "../core/request-record.ts";
import type { Accounting } from "../core/accounts.ts";
import { AccountCounter } from "./accounting.ts";
import { DurationHistogram } from "./duration-histogram.ts";
import { e2eNs, scheduleLagNs, tpotNs, ttftNs, wireTtftNs } from "./latencies.ts";
import { Sample } from "./sample.ts";
import { keepsSlo, type Slo } from "./slo.ts";
import type { PopulationSummaries } from "./summary.ts";
import { addGaps } from "./token-gaps.ts";
import { accountInWindow, checkWindow, isInWindow, type MeasurementWindow } from "./window.ts";

/**
 * Everything that is counted over the requests of one window. Several of them, from other processes or runs, merge into
 * exactly what one would have counted.
 */
export class WindowMeasures {
  readonly #accounts: AccountCounter = new AccountCounter();
  readonly ttftNs: Sample = new Sample();
  readonly wireTtftNs: Sample = new Sample();
  readonly tpotNs: Sample = new Sample();
  readonly e2eNs: Sample = new Sample();
  readonly scheduleLagNs: Sample = new Sample();
  /** Gaps of the requests that completed. */
  readonly gapsNs: DurationHistogram = new DurationHistogram();
  /** Gaps of those that did not, which the offered population has too. */
  readonly brokenGapsNs: DurationHistogram = new DurationHistogram();
  #keptSlo = 0;
  #withoutTokenTimes = 0;

  add(record: RequestRecord, window: MeasurementWindow, slo: Slo): void {
    const account = accountInWindow(record, window);
    this.#accounts.add(account);
    const lag = scheduleLagNs(record);
    if (lag !== undefined) this.scheduleLagNs.add(lag);
    if (account === "completed") {
      this.#addCompleted(record);
      if (keepsSlo(record, slo)) this.#keptSlo += 1;
      return;
    }
    this.ttftNs.addUnreached();
    this.wireTtftNs.addUnreached();
    this.tpotNs.addUnreached();
    this.e2eNs.addUnreached();
    if (record.tokenTimes !== undefined) addGaps(record.tokenTimes, this.brokenGapsNs);
  }

  merge(other: WindowMeasures): void {
    this.#accounts.merge(other.#accounts);
    this.ttftNs.merge(other.ttftNs);
    this.wireTtftNs.merge(other.wireTtftNs);
    this.tpotNs.merge(other.tpotNs);
    this.e2eNs.merge(other.e2eNs);
    this.scheduleLagNs.merge(other.scheduleLagNs);
    this.gapsNs.merge(other.gapsNs);
    this.brokenGapsNs.merge(other.brokenGapsNs);
    this.#keptSlo += other.#keptSlo;
    this.#withoutTokenTimes += other.#withoutTokenTimes;
  }

  accounting(): Accounting {
    return this.#accounts.total();
  }

  /** Share of offered requests that completed within the SLO; 0 of nothing. */
  goodputShare(): number {
    const { offered } = this.accounting();
    return offered === 0 ? 0 : this.#keptSlo / offered;
  }

  /** Completed requests whose gaps are unknown; where there are any, `itlMs` speaks for the others only. */
  get withoutTokenTimes(): number {
    return this.#withoutTokenTimes;
  }

  /**
   * The gaps between chunks of content. Over offered requests, each one that did not complete adds the gaps it had and
   * one of +∞: the gap after its last chunk never ended.
   */
  itlMs(): PopulationSummaries {
    const { offered, completed } = this.accounting();
    const all = new DurationHistogram();
    all.merge(this.gapsNs);
    all.merge(this.brokenGapsNs);
    return { completed: this.gapsNs.summary(NS_PER_MS), offered: all.summary(NS_PER_MS, offered - completed) };
  }

  #addCompleted(record: RequestRecord): void {
    addOrMiss(this.ttftNs, ttftNs(record));
    addOrMiss(this.wireTtftNs, wireTtftNs(record));
    addOrMiss(this.e2eNs, e2eNs(record));
    // One token has no time per token, which is no failure: the request is in neither population.
    const tpot = tpotNs(record);
    if (tpot !== undefined) this.tpotNs.add(tpot);
    if (record.tokenTimes !== undefined) addGaps(record.tokenTimes, this.gapsNs);
    else if (record.outputTokens > 1) this.#withoutTokenTimes += 1;
  }
}

/** Measures the requests of a window; records of other times (warm-up) may be among them. */
export function measureWindow(
  records: Iterable<RequestRecord>,
  window: MeasurementWindow,
  slo: Slo = {},
): WindowMeasures {
  checkWindow(window);
  const measures = new WindowMeasures();
  for (const record of records) if (isInWindow(record, window)) measures.add(record, window, slo);
  return measures;
}

function addOrMiss(sample: Sample, value: number | undefined): void {
  if (value === undefined) sample.addUnreached();
  else sample.add(value);
}
