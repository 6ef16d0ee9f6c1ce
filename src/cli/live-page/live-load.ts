import { NS_PER_MS } from "../../core/clock.ts";
import { WarmpathError } from "../../core/errors.ts";
import { type RequestRecord, UNAVAILABLE } from "../../core/request-record.ts";
import type { LoadView } from "../../dashboard/protocol.ts";
import type { RollingWindow } from "../../dashboard/rolling-window.ts";
import type { LoadSource } from "../../dashboard/sources.ts";
import { type WorkerRates, WorkerWindow } from "../../dashboard/worker-window.ts";
import type { LoadRun } from "../../loadgen/types.ts";

const WINDOW_SECONDS = 60;

/** A run of load as the page sees and steers it. Stopped, it goes on with nobody in it, so that its books stay open. */
export class LiveLoad implements LoadSource {
  readonly #workers = new WorkerWindow(WINDOW_SECONDS * 1000);
  #run: LoadRun | undefined;
  #concurrency: number | undefined;
  #isRunning: boolean;

  /** Without a concurrency the load follows a schedule, and only looking is possible. */
  constructor(concurrency: number | undefined, isRunning: boolean) {
    this.#concurrency = concurrency;
    this.#isRunning = isRunning;
  }

  /** Conversations that the run should begin with. */
  get wanted(): number {
    return this.#isRunning ? (this.#concurrency ?? 0) : 0;
  }

  /** Told of every record of the run; hand it to the run's options. */
  readonly record = ({ worker, endNs, promptTokens, observedCachedTokens, account }: RequestRecord): void => {
    if (worker === undefined || worker === UNAVAILABLE || endNs === undefined || account !== "completed") return;
    const cachedTokens = observedCachedTokens === UNAVAILABLE ? undefined : observedCachedTokens;
    this.#workers.add({ worker, endMs: endNs / NS_PER_MS, promptTokens, cachedTokens });
  };

  /** The run comes after its options, which need `record`. */
  follow(run: LoadRun): void {
    this.#run = run;
  }

  view(): LoadView {
    const run = this.#present();
    this.#notice(run.concurrency);
    const { inFlight } = run.rolling();
    const { recent, reasons } = run.clientHealth();
    return {
      state: this.#isRunning ? "running" : inFlight > 0 ? "stopping" : "stopped",
      concurrency: this.#concurrency ?? null,
      accounting: run.accounts(),
      // A hiccup of long ago says nothing about what is shown now.
      clientProblems: recent?.verdict === "bottleneck" ? reasons : [],
    };
  }

  window(): RollingWindow {
    const { ttftMs, tpotMs, itlMs, e2eMs, cacheHitRate, errorRate, errors, ...rates } = this.#present().rolling();
    return {
      windowSeconds: WINDOW_SECONDS,
      ttftMs,
      tpotMs,
      itlMs,
      e2eMs,
      requestsPerSecond: rates.requestsPerSecond,
      outputTokensPerSecond: rates.outputTokensPerSecond,
      hitShare: cacheHitRate === UNAVAILABLE ? null : cacheHitRate,
      errorShare: errorRate,
      errorsByKind: errors,
      inFlight: rates.inFlight,
      oldestInFlightMs: rates.oldestInFlightMs,
    };
  }

  workerRates(): ReadonlyMap<string, WorkerRates> {
    return this.#workers.rates(this.#present().nowNs() / NS_PER_MS);
  }

  setConcurrency(concurrency: number): void {
    this.#steer(concurrency, this.#isRunning);
  }

  start(): void {
    this.#steer(this.#concurrency, true);
  }

  stop(): void {
    this.#steer(this.#concurrency, false);
  }

  /** A load can also be steered from its terminal; what the page shows and begins with next is what is meant there. */
  #notice(steered: number | undefined): void {
    if (steered === undefined || steered === this.wanted) return;
    this.#isRunning = steered > 0;
    if (steered > 0) this.#concurrency = steered;
  }

  #steer(concurrency: number | undefined, isRunning: boolean): void {
    if (this.#concurrency === undefined) {
      throw new WarmpathError("WP_INVALID_STATE", "this load follows a schedule and cannot be steered");
    }
    this.#concurrency = concurrency;
    this.#isRunning = isRunning;
    this.#present().setConcurrency(this.wanted);
  }

  #present(): LoadRun {
    if (this.#run !== undefined) return this.#run;
    throw new WarmpathError("WP_INVALID_STATE", "a live load is looked at before it follows a run");
  }
}
