import type { ShedReason } from "../core/admission/types.ts";
import { type Clock, NS_PER_MS } from "../core/clock.ts";
import type { Place } from "../core/effects.ts";
import { WarmpathError } from "../core/errors.ts";
import type { Policy } from "../core/policy/types.ts";
import type { Router } from "../core/router.ts";
import type { DiscoveredWorker } from "../planes/discovery/types.ts";
import type { EventPlane } from "../planes/event/types.ts";
import type { LoadPlane } from "../planes/load/types.ts";
import type { AttemptEnd, DecidedRequest, Decider, OfferedRequest, Placement, Readiness } from "./decider.ts";
import { EventTimes } from "./event-times.ts";
import { FleetSync } from "./fleet-sync.ts";
import { registerFleetGauges } from "./metrics/fleet-gauges.ts";
import { GatewayMetrics, type PlacedRequest } from "./metrics/gateway-metrics.ts";
import { monotonicClock } from "./monotonic-clock.ts";
import { type DrivenRequest, RouterDriver } from "./router-driver.ts";
import { WorkerDirectory } from "./worker-directory.ts";

/** Told how attempts fared, worker by worker. */
export interface AttemptObserver {
  attemptEnded(worker: string, end: AttemptEnd): void;
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
  readonly #driver: RouterDriver;
  readonly #ticker: NodeJS.Timeout;
  readonly #open = new Map<string, OpenRequest>();
  readonly #observers: AttemptObserver[] = [];

  constructor(options: LocalDeciderOptions) {
    const { router, clock = monotonicClock(), events, load, problem, tickMs = DEFAULT_TICK_MS } = options;
    const { directory } = this;
    const eventTimes = new EventTimes(clock, (ageMs) => this.metrics.eventLag(router.policy.name, ageMs));
    this.router = router;
    this.clock = clock;
    this.#driver = new RouterDriver({
      router,
      clock,
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
    registerFleetGauges(this.metrics.registry, { router, clock, lastEventNs });
    this.#ticker = setInterval(() => {
      this.fleet.tick();
      this.#driver.tick();
    }, tickMs);
    this.#ticker.unref();
  }

  /** Requests that have not ended. */
  get open(): number {
    return this.#open.size;
  }

  /** Has attempts told to somebody who draws conclusions about workers. */
  observeAttempts(observer: AttemptObserver): void {
    this.#observers.push(observer);
  }

  /** Changes the policy at run time. */
  setPolicy(policy: Policy): void {
    this.#driver.setPolicy(policy);
  }

  offer(request: OfferedRequest, decided: DecidedRequest): void {
    const { startWithinMs } = request;
    const policy = this.router.policy.name;
    const open = new OpenRequest(this, decided, request, policy);
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
  }

  grew(id: string, tokens: number): void {
    this.#driver.grew(id, tokens);
  }

  ended(id: string, end: AttemptEnd): void {
    const open = this.#open.get(id);
    // A client may leave while the last word on its request is on its way.
    if (open === undefined) return;
    const { worker, placed } = open;
    if (worker !== undefined) for (const observer of this.#observers) observer.attemptEnded(worker, end);
    const isFinal = this.#driver.ended(id, end);
    if (isFinal) {
      this.#open.delete(id);
      this.metrics.ended(open.policy, placed, end);
      open.decided.over();
    } else if (this.#open.has(id)) this.metrics.retried(open.policy, end.fault ?? "");
  }

  refused(reason: string): void {
    this.metrics.refused(this.router.policy.name, reason);
  }

  invalid(code: string): void {
    this.metrics.invalid(code);
  }

  models(): readonly string[] {
    return this.directory.models();
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
    return { worker: listed.name, url: listed.url, dpRank: listed.dpRank, decision };
  }

  /** Notes the end of a request that the router turned away. */
  forgetShed(id: string, policy: string, reason: ShedReason): void {
    this.#open.delete(id);
    this.metrics.shed(policy, reason.code);
  }
}

/** One request between its offer and its end, on the decider's side. */
class OpenRequest implements DrivenRequest {
  readonly decided: DecidedRequest;
  readonly policy: string;
  placed: PlacedRequest | undefined;
  worker: string | undefined;
  readonly #decider: LocalDecider;
  readonly #id: string;
  readonly #promptTokens: number;
  readonly #offeredNs: number;

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
    if (this.placed === undefined) {
      const { policy } = this;
      this.placed = {
        policy,
        promptTokens: this.#promptTokens,
        predictedCachedTokens: place.predictedCachedTokens,
      };
      metrics.placed(this.placed, (clock.nowNs() - this.#offeredNs) / NS_PER_MS);
    }
    this.worker = this.#decider.directory.get(place.replica)?.worker;
    this.decided.place(placement);
  }

  shed(reason: ShedReason): void {
    this.#decider.forgetShed(this.#id, this.policy, reason);
    this.decided.shed(reason);
  }
}
