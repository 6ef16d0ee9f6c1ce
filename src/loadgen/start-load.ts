import { type Accounting, Accounts } from "../core/accounts.ts";
import { NS_PER_MS, NS_PER_SECOND, type Nanoseconds } from "../core/clock.ts";
import { WarmpathError } from "../core/errors.ts";
import { e2eNs, tpotNs } from "../measure/latencies.ts";
import { RollingMetrics, type RollingSnapshot } from "../measure/rolling/rolling-metrics.ts";
import type { WorkloadRequest } from "../workload/request.ts";
import { type ClientHealth, ClientHealthMonitor } from "./client-health.ts";
import { CompletionClient } from "./completion-client.ts";
import { Flight, type FlightListener } from "./flight.ts";
import { LoadTotals } from "./load-totals.ts";
import { type Outcome, timedOutOutcome, UNFINISHED } from "./outcome.ts";
import { RunClock } from "./run-clock.ts";
import type { LoadOptions, LoadRun, LoadSummary } from "./types.ts";

const DRAIN_MS = 30_000;
/** The longest that a timer of Node's can be. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Starts load; it runs until it is stopped, its duration is over, or a schedule has ended. */
export function startLoad(options: LoadOptions): RunningLoad {
  return new RunningLoad(options);
}

/** Load of this process: takes what the source has due, sends it, and settles every request in one account. */
export class RunningLoad implements LoadRun, FlightListener {
  readonly clock: RunClock;
  readonly metrics: RollingMetrics;
  readonly finished: Promise<LoadSummary>;
  readonly #options: LoadOptions;
  readonly #client: CompletionClient;
  readonly #health = new ClientHealthMonitor();
  readonly #accounts = new Accounts();
  readonly #totals = new LoadTotals();
  readonly #open = new Set<Flight>();
  readonly #abort = new AbortController();
  readonly #endNs: Nanoseconds;
  readonly #timeoutNs: Nanoseconds;
  #resolve: (summary: LoadSummary) => void = () => {};
  #dueTimer: NodeJS.Timeout | undefined;
  #deadlineTimer: NodeJS.Timeout | undefined;
  #drainTimer: NodeJS.Timeout | undefined;
  #followUps = 0;
  #isPumping = false;
  #state: "running" | "draining" | "over" = "running";
  #overNs: Nanoseconds | undefined;

  constructor(options: LoadOptions) {
    this.#options = options;
    this.clock = new RunClock(options.originHrtimeNs);
    this.metrics = new RollingMetrics();
    this.#client = new CompletionClient(options.target);
    this.#endNs = options.durationNs ?? Infinity;
    this.#timeoutNs = (options.timeoutMs ?? Infinity) * NS_PER_MS;
    this.finished = new Promise((resolve) => (this.#resolve = resolve));
    // Not before whoever starts it holds it: a listener may want to ask.
    this.#dueTimer = setTimeout(() => this.#pump(), 0);
  }

  nowNs(): Nanoseconds {
    return this.clock.nowNs();
  }

  get concurrency(): number | undefined {
    return this.#options.source.concurrency;
  }

  setConcurrency(concurrency: number): void {
    const { source } = this.#options;
    if (source.setConcurrency === undefined) {
      throw new WarmpathError("WP_INVALID_STATE", "this load follows a schedule; it has no concurrency");
    }
    source.setConcurrency(concurrency, this.nowNs());
    this.#pump();
  }

  rolling(): RollingSnapshot {
    return this.metrics.read(this.nowNs());
  }

  accounts(): Accounting {
    return this.#accounts.totals;
  }

  clientHealth(): ClientHealth {
    return this.#health.health();
  }

  summary(): LoadSummary {
    const seconds = (this.#overNs ?? this.nowNs()) / NS_PER_SECOND;
    return { seconds, totals: this.#totals, health: this.clientHealth() };
  }

  stop({ drainMs = this.#options.drainMs ?? DRAIN_MS }: { readonly drainMs?: number } = {}): Promise<LoadSummary> {
    if (this.#state === "over") return this.finished;
    if (this.#state === "running") {
      // What was due until now is offered, also where the client was too slow to send it in time.
      this.#takeDue(Math.min(this.nowNs(), this.#endNs));
      this.#state = "draining";
      clearTimeout(this.#dueTimer);
      this.#abort.abort();
    }
    clearTimeout(this.#drainTimer);
    if (this.#open.size === 0 || drainMs <= 0) this.#finish();
    else this.#drainTimer = setTimeout(() => this.#finish(), Math.min(drainMs, LONGEST_TIMER_MS));
    return this.finished;
  }

  content(flight: Flight, events: number, gapNs: Nanoseconds | undefined, nowNs: Nanoseconds): void {
    this.metrics.content(events, gapNs, nowNs);
    if (gapNs !== undefined) return;
    const ttftNs = nowNs - flight.request.arrivalNs;
    this.metrics.firstToken(ttftNs, nowNs);
    this.#options.onFirstToken?.(ttftNs);
  }

  ended(flight: Flight, given: Outcome): void {
    const { request } = flight;
    const outcome = this.#inTime(flight, given);
    const record = flight.record(outcome);
    this.#open.delete(flight);
    if (outcome.account !== "unfinished") this.#accounts.end(outcome.account);
    this.#totals.add(record);
    this.metrics.ended(
      request.id,
      {
        account: record.account,
        e2eNs: e2eNs(record),
        tpotNs: tpotNs(record),
        promptTokens: record.promptTokens,
        cachedTokens: record.observedCachedTokens,
        uncountedTokens: record.outputTokens - flight.contentEvents,
      },
      this.nowNs(),
    );
    this.#options.onRecord?.(record);
    if (this.#state === "running") this.#goOn(flight, outcome.account === "completed");
    else if (this.#state === "draining" && this.#open.size === 0) this.#finish();
  }

  /** Has the source know what came of a request, and the next turn of its conversation made ready. */
  #goOn(flight: Flight, completed: boolean): void {
    const { request, outputTokens } = flight;
    const { prompts, source } = this.#options;
    if (!completed || request.isLastTurn) {
      prompts.forget(request.session);
      source.ended(request, { nowNs: this.nowNs(), completed, outputTokens });
      this.#pump();
      return;
    }
    this.#followUps += 1;
    const answer = { escapedText: flight.escapedText, outputTokens };
    const isReady = prompts.answered(request, answer, this.#abort.signal);
    const told = (hasFollowUp: boolean): void => {
      this.#followUps -= 1;
      if (!hasFollowUp) prompts.forget(request.session);
      if (this.#state !== "running") return;
      source.ended(request, { nowNs: this.nowNs(), completed: hasFollowUp, outputTokens });
      this.#pump();
    };
    if (isReady === undefined) told(true);
    else
      isReady.then(
        () => told(true),
        () => told(false),
      );
  }

  /** Sends what is due, and comes again when the next is. */
  #pump(): void {
    if (this.#state !== "running" || this.#isPumping) return;
    clearTimeout(this.#dueTimer);
    const nowNs = this.nowNs();
    this.#takeDue(Math.min(nowNs, this.#endNs));
    if (nowNs >= this.#endNs) {
      void this.stop();
      return;
    }
    const nextNs = this.#options.source.nextDueNs();
    if (this.#options.endsWhenIdle === true && nextNs === Infinity && this.#open.size + this.#followUps === 0) {
      void this.stop();
      return;
    }
    const wakeNs = Math.min(nextNs, this.#endNs);
    if (wakeNs === Infinity) return;
    // Against the time itself, never against the last timer: lateness does not add up.
    const waitMs = Math.ceil((wakeNs - this.nowNs()) / NS_PER_MS);
    this.#dueTimer = setTimeout(() => this.#pump(), Math.max(0, Math.min(waitMs, LONGEST_TIMER_MS)));
  }

  #takeDue(untilNs: Nanoseconds): void {
    const { source } = this.#options;
    this.#isPumping = true;
    try {
      while (source.nextDueNs() <= untilNs) this.#send(source.take());
    } finally {
      this.#isPumping = false;
    }
  }

  #send(request: WorkloadRequest): void {
    const { prompts } = this.#options;
    const prompt = prompts.write(request);
    const flight = new Flight(request, prompt.kind, prompts.needsAnswer(request), this);
    this.#accounts.offer();
    this.#open.add(flight);
    const nowNs = this.nowNs();
    this.metrics.offered(request.id, request.arrivalNs, nowNs);
    this.#health.sent(nowNs - request.arrivalNs);
    this.#client.send(request, prompt, flight);
    this.#watchDeadlines();
  }

  /** Waits for the first deadline: requests are due one after the other, so it is that of the oldest. */
  #watchDeadlines(): void {
    const [oldest] = this.#open;
    if (this.#timeoutNs === Infinity || this.#deadlineTimer !== undefined || oldest === undefined) return;
    const waitMs = Math.ceil((oldest.request.arrivalNs + this.#timeoutNs - this.nowNs()) / NS_PER_MS);
    this.#deadlineTimer = setTimeout(() => this.#checkDeadlines(), Math.min(Math.max(1, waitMs), LONGEST_TIMER_MS));
  }

  #checkDeadlines(): void {
    this.#deadlineTimer = undefined;
    const nowNs = this.nowNs();
    for (const flight of this.#open) if (this.#isLate(flight, nowNs)) flight.end(this.#timedOut);
    this.#watchDeadlines();
  }

  #isLate({ request }: Flight, nowNs: Nanoseconds): boolean {
    return nowNs - request.arrivalNs > this.#timeoutNs;
  }

  get #timedOut(): Outcome {
    return timedOutOutcome(this.#timeoutNs / NS_PER_MS);
  }

  /** What comes before the timer does, and after the deadline, is late all the same. */
  #inTime(flight: Flight, outcome: Outcome): Outcome {
    const isOpen = outcome.account === "unfinished";
    return isOpen || !this.#isLate(flight, this.nowNs()) ? outcome : this.#timedOut;
  }

  #finish(): void {
    if (this.#state === "over") return;
    this.#state = "over";
    clearTimeout(this.#drainTimer);
    for (const flight of this.#open) flight.end(UNFINISHED);
    clearTimeout(this.#deadlineTimer);
    this.#overNs = this.nowNs();
    this.#health.stop();
    void this.#client.close().then(() => this.#resolve(this.summary()));
  }
}
