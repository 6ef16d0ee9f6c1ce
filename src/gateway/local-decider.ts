import type { Accounting } from "../core/accounts.ts";
import type { ShedReason } from "../core/admission/types.ts";
import { type Clock, NS_PER_MS } from "../core/clock.ts";
import type { Place } from "../core/effects.ts";
import { WarmpathError } from "../core/errors.ts";
import type { Policy } from "../core/policy/types.ts";
import type { Router } from "../core/router.ts";
import type { RouterRules } from "../core/router-options.ts";
import type { DiscoveredWorker } from "../planes/discovery/types.ts";
import type { EventPlane } from "../planes/event/types.ts";
import type { LoadPlane } from "../planes/load/types.ts";
import type { AttemptEnd, DecidedRequest, Decider, OfferedRequest, Placement, Readiness } from "./decider.ts";
import { EventTimes } from "./event-times.ts";
import { FleetSync } from "./fleet-sync.ts";
import { registerFleetGauges } from "./metrics/fleet-gauges.ts";
import { GatewayMetrics, type PlacedRequest } from "./metrics/gateway-metrics.ts";
import { monotonicClock } from "./monotonic-clock.ts";
import type { CircuitState } from "./health/circuit-breaker.ts";
import { RetryBudget, type RetryBudgetOptions } from "./retry-budget.ts";
import { type DrivenRequest, type RequestObserver, RouterDriver } from "./router-driver.ts";
import { WorkerDirectory } from "./worker-directory.ts";

/** Told how attempts fared, worker by worker, and how long after they were placed. */
export interface AttemptObserver {
  /** The first token has come. */
  attemptAnswered(worker: string, afterMs: number): void;
  /** `hasFailedElsewhere` of a request that another worker had failed before. */
  attemptEnded(worker: string, end: AttemptEnd, afterMs: number, hasFailedElsewhere: boolean): void;
}

export interface LocalDeciderOptions {
  readonly router: Router;
  readonly clock?: Clock;
  /** Where a worker's events come from; the cache of one without is guessed from what was placed there. */
  readonly events?: (worker: DiscoveredWorker) => EventPlane | undefined;
  /** Who asks a worker for its load, where its events do not tell. */
  readonly load?: (worker: DiscoveredWorker) => LoadPlane | undefined;
  /** Told, in words, of what is wrong with a worker and does not stop anything. */
  readonly problem?: (message: string) => void;
  /** How often the router is told that time has passed. */
  readonly tickMs?: number;
  readonly retryBudget?: RetryBudgetOptions;
  /** Told what happens to requests. */
  readonly requests?: RequestObserver | undefined;
}

const DEFAULT_TICK_MS = 100;

/** The decider of this process: drives the router, keeps its fleet and its books. */
export class LocalDecider implements Decider {
  readonly router: Router;
  readonly clock: Clock;
  /** Who is in the fleet; the listener for whatever discovers workers. */
  readonly fleet: FleetSync;
  readonly directory: WorkerDirectory = new WorkerDirectory();
  readonly metrics: GatewayMetrics = new GatewayMetrics();
  readonly retryBudget: RetryBudget;
  readonly #driver: RouterDriver;
  readonly #ticker: NodeJS.Timeout;
  readonly #open = new Map<string, OpenRequest>();
  readonly #observers: AttemptObserver[] = [];
  #refused = 0;

  constructor(options: LocalDeciderOptions) {
    const { router, clock = monotonicClock(), events, load, problem, tickMs = DEFAULT_TICK_MS } = options;
    const { directory } = this;
    const eventTimes = new EventTimes(clock, (ageMs) => this.metrics.eventLag(router.policy.name, ageMs));
    this.router = router;
    this.clock = clock;
    this.retryBudget = new RetryBudget(options.retryBudget);
    this.#driver = new RouterDriver({
      router,
      clock,
      observer: options.requests,
      requestEvents: (effect) => this.fleet.request(effect),
      decided: ({ matchNs, scoreNs, recordNs }) =>
        this.metrics.routed(router.policy.name, {
          matchMs: matchNs / NS_PER_MS,
          scoreMs: scoreNs / NS_PER_MS,
          recordMs: recordNs / NS_PER_MS,
        }),
    });
    this.fleet = new FleetSync({
      router,
      clock,
      carryOut: (effects) => this.#driver.carryOut(effects),
      joined: (replica, worker, dpRank) => directory.joined(replica, worker, dpRank),
      left: (replica, worker) => directory.left(replica, worker),
      ...(events !== undefined && { events: (worker) => eventTimes.watched(events(worker)) }),
      ...(load !== undefined && { load }),
      ...(problem !== undefined && { problem }),
    });
    const lastEventNs = (replica: number): number | undefined => eventTimes.lastNs(directory.get(replica)?.name);
    const circuitOf = (replica: number): CircuitState | undefined => this.fleet.circuitOf(replica);
    registerFleetGauges(this.metrics.registry, { router, clock, lastEventNs, circuitOf });
    this.#ticker = setInterval(() => this.tick(), tickMs);
    this.#ticker.unref();
  }

  /** Time has passed, or something else may have made room for what waits. */
  tick(): void {
    this.fleet.tick();
    this.#driver.tick();
  }

  /** Requests that have not ended. */
  get open(): number {
    return this.#open.size;
  }

  /** Every request so far by how it ended, those included that were turned away before the router heard of them. */
  get accounting(): Accounting {
    const { accounting } = this.router;
    return { ...accounting, offered: accounting.offered + this.#refused, shed: accounting.shed + this.#refused };
  }

  /** Has attempts told to somebody who draws conclusions about workers. */
  observeAttempts(observer: AttemptObserver): void {
    this.#observers.push(observer);
  }

  /** Changes the policy at run time. */
  setPolicy(policy: Policy): void {
    this.#driver.setPolicy(policy);
  }

  /** Changes who is let in and how often a request is tried, at run time. */
  setRules(rules: RouterRules): void {
    this.#driver.setRules(rules);
  }

  offer(request: OfferedRequest, decided: DecidedRequest): void {
    const { startWithinMs } = request;
    const policy = this.router.policy.name;
    const open = new OpenRequest(this, decided, request, policy);
    this.retryBudget.offered(this.#nowMs());
    this.#open.set(request.id, open);
    const deadlineNs = startWithinMs === undefined ? undefined : this.clock.nowNs() + startWithinMs * NS_PER_MS;
    this.#driver.offer(deadlineNs === undefined ? request : { ...request, deadlineNs }, open);
    // After the request is on its way: counting can wait, the client cannot.
    this.metrics.offered(policy, request.preparation);
  }

  sent(id: string): void {
    this.#driver.sent(id);
  }

  firstToken(id: string): void {
    this.#driver.firstToken(id);
    const open = this.#open.get(id);
    if (open?.worker === undefined) return;
    const afterMs = this.#nowMs() - open.placedMs;
    for (const observer of this.#observers) observer.attemptAnswered(open.worker, afterMs);
  }

  grew(id: string, tokens: number): void {
    this.#driver.grew(id, tokens);
  }

  ended(id: string, end: AttemptEnd): void {
    const open = this.#open.get(id);
    // A client may leave while the last word on its request is on its way.
    if (open === undefined) return;
    const nowMs = this.#nowMs();
    const { worker, placedMs, hasFailed } = open;
    if (worker !== undefined) {
      for (const observer of this.#observers) observer.attemptEnded(worker, end, nowMs - placedMs, hasFailed);
      open.hasFailed = true;
    }
    const isOverBudget = isRepeatable(end) && !this.retryBudget.hasRoom(nowMs);
    if (end.continuation !== undefined) open.continues(end.continuation.promptTokens);
    const isFinal = this.#driver.ended(id, isOverBudget ? { ...end, mayRetry: false } : end);
    if (isFinal) this.#over(id, open, end, isOverBudget);
    else this.#goesOn(id, open, end, nowMs);
  }

  /** An attempt has ended and the request has not: it was placed again, waits to be, or has been turned away meanwhile. */
  #goesOn(id: string, { policy }: OpenRequest, { continuation, fault }: AttemptEnd, nowMs: number): void {
    const isOpen = this.#open.has(id);
    if (continuation !== undefined) {
      if (isOpen) this.metrics.migrated(policy, fault ?? "");
      else this.metrics.notMigrated(policy, "no-worker");
    } else if (isOpen) {
      this.metrics.retried(policy, fault ?? "");
      this.retryBudget.retried(nowMs);
    }
  }

  #over(id: string, open: OpenRequest, end: AttemptEnd, isOverBudget: boolean): void {
    const { policy, placed, decided } = open;
    this.#open.delete(id);
    this.metrics.ended(policy, placed, end);
    const notContinued = end.continuation === undefined ? end.notContinued : "no-worker";
    if (notContinued !== undefined) this.metrics.notMigrated(policy, notContinued);
    if (isOverBudget) this.metrics.retryRefused(policy, end.fault ?? "");
    decided.over(isOverBudget ? "retry-budget" : undefined);
  }

  #nowMs(): number {
    return this.clock.nowNs() / NS_PER_MS;
  }

  refused(reason: string): void {
    this.#refused++;
    this.metrics.refused(this.router.policy.name, reason);
  }

  invalid(code: string): void {
    this.metrics.invalid(code);
  }

  models(): readonly string[] {
    return this.directory.models();
  }

  adapters(): readonly string[] {
    return this.directory.adapters();
  }

  readiness(): Readiness {
    const { fleet } = this.router;
    const replicas = fleet.indices();
    const index: Record<string, number> = {};
    for (const replica of replicas) {
      const state = this.router.indexState(replica);
      index[state] = (index[state] ?? 0) + 1;
    }
    const ready = replicas.filter((replica) => fleet.state(replica) === "ready").length;
    const workers = { ready, total: replicas.length };
    return { decider: "present", policy: this.router.policy.name, workers, index };
  }

  metricsText(): Promise<string> {
    return this.metrics.text();
  }

  close(): Promise<void> {
    clearInterval(this.#ticker);
    return this.fleet.close();
  }

  /** The address behind a placement. */
  placementOf({ replica, decision }: Place): Placement {
    const listed = this.directory.get(replica);
    if (listed === undefined) throw new WarmpathError("WP_UNKNOWN_REPLICA", `replica ${replica} has no address`);
    const isToBeHeard = this.router.indexState(replica) === "approximate";
    return { worker: listed.name, url: listed.url, dpRank: listed.dpRank, decision, isToBeHeard };
  }

  /** Notes the end of a request that the router turned away. */
  forgetShed(id: string, policy: string, reason: ShedReason): void {
    this.#open.delete(id);
    this.metrics.shed(policy, reason.code);
  }
}

/** Whether an attempt ended in a way that the router would try elsewhere. A stream that goes on is nobody's retry. */
function isRepeatable({ outcome, mayRetry, ttftMs, continuation }: AttemptEnd): boolean {
  const isFailure = outcome === "failed" || outcome === "rejected";
  return isFailure && mayRetry !== false && ttftMs === undefined && continuation === undefined;
}

/** One request between its offer and its end, on the decider's side. */
class OpenRequest implements DrivenRequest {
  readonly decided: DecidedRequest;
  readonly policy: string;
  placed: PlacedRequest | undefined;
  worker: string | undefined;
  placedMs = 0;
  /** An attempt has ended, which was the last unless it failed. */
  hasFailed = false;
  readonly #decider: LocalDecider;
  readonly #id: string;
  readonly #offeredNs: number;
  #promptTokens: number;
  #isPromptCounted = false;

  constructor(decider: LocalDecider, decided: DecidedRequest, request: OfferedRequest, policy: string) {
    this.#decider = decider;
    this.decided = decided;
    this.policy = policy;
    this.#id = request.id;
    this.#promptTokens = request.promptTokens;
    this.#offeredNs = decider.clock.nowNs();
  }

  place(place: Place): void {
    const { clock, metrics } = this.#decider;
    const placement = this.#decider.placementOf(place);
    const nowNs = clock.nowNs();
    this.placedMs = nowNs / NS_PER_MS;
    if (this.placed === undefined) metrics.waited(this.policy, (nowNs - this.#offeredNs) / NS_PER_MS);
    if (!this.#isPromptCounted) {
      this.#isPromptCounted = true;
      const { policy } = this;
      const { predictedCachedTokens } = place;
      this.placed = { policy, promptTokens: this.#promptTokens, predictedCachedTokens };
      metrics.placed(this.placed);
    }
    this.worker = this.#decider.directory.get(place.replica)?.worker;
    this.decided.place(placement);
  }

  /** From now on it is asked for the rest of its answer, by a longer prompt. */
  continues(promptTokens: number): void {
    this.#promptTokens = promptTokens;
    this.#isPromptCounted = false;
  }

  shed(reason: ShedReason): void {
    this.#decider.forgetShed(this.#id, this.policy, reason);
    this.decided.shed(reason);
  }
}
