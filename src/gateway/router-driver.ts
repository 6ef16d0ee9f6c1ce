import type { Clock } from "../core/clock.ts";
import type { Effect, Place } from "../core/effects.ts";
import type { ShedReason } from "../core/admission/types.ts";
import type { ReplicaSpec } from "../core/replica.ts";
import type { RoutedRequest } from "../core/routed-request.ts";
import type { Ending } from "../core/open-request.ts";
import type { Router } from "../core/router.ts";
import type { EventPlane, EventSubscription } from "../planes/event/types.ts";

/** A request as the driver sees it: told where to go, or that it is turned away. */
export interface DrivenRequest {
  place(placement: Place): void;
  shed(reason: ShedReason): void;
}

export interface RouterDriverOptions {
  readonly router: Router;
  readonly clock: Clock;
  /** Without a plane the router guesses caches from what it placed. */
  readonly events?: EventPlane | undefined;
  readonly tickMs?: number;
}

const DEFAULT_TICK_MS = 100;

/**
 * Runs a router by the wall clock: tells it what happens and when, and carries out what it answers. Nothing else in the
 * gateway calls the router's verbs.
 */
export class RouterDriver {
  readonly router: Router;
  readonly #clock: Clock;
  readonly #events: EventPlane | undefined;
  readonly #requests = new Map<string, DrivenRequest>();
  readonly #subscriptions = new Map<number, EventSubscription>();
  readonly #ticker: NodeJS.Timeout;

  constructor(options: RouterDriverOptions) {
    this.router = options.router;
    this.#clock = options.clock;
    this.#events = options.events;
    this.#ticker = setInterval(
      () => this.#carryOut(this.router.tick(this.#clock.nowNs())),
      options.tickMs ?? DEFAULT_TICK_MS,
    );
    this.#ticker.unref();
  }

  /** Requests that have not ended. */
  get open(): number {
    return this.#requests.size;
  }

  /** Adds a replica and listens to its events; what it has cached already is asked for first. */
  addReplica(spec: ReplicaSpec): number {
    const { router } = this;
    const events = this.#events;
    const replica = router.addReplica(spec, events?.capabilities);
    if (events === undefined) return replica;
    const subscription = events.subscribe(router.fleet.name(replica), {
      event: (event) => this.#carryOut(router.applyEvent(replica, event, this.#clock.nowNs())),
      snapshot: (snapshot) => this.#carryOut(router.restore(replica, snapshot, this.#clock.nowNs())),
      replayUnavailable: () => this.#carryOut(router.replayUnavailable(replica, this.#clock.nowNs())),
    });
    this.#subscriptions.set(replica, subscription);
    if (events.capabilities.snapshot) subscription.resync();
    return replica;
  }

  offer(request: RoutedRequest, driven: DrivenRequest): void {
    this.#requests.set(request.id, driven);
    this.#carryOut(this.router.offer(request, this.#clock.nowNs()));
  }

  sent(id: string): void {
    this.router.sent(id, this.#clock.nowNs());
  }

  firstToken(id: string): void {
    this.#carryOut(this.router.firstToken(id, this.#clock.nowNs()));
  }

  grew(id: string, tokens: number): void {
    this.#carryOut(this.router.grew(id, tokens, this.#clock.nowNs()));
  }

  /** Reports an end; true if it was final, false if the router tries again, keeps the request waiting or turned it away. */
  ended(id: string, ending: Ending): boolean {
    const effects = this.router.ended(id, ending, this.#clock.nowNs());
    const isFinal = !effects.some((effect) => "request" in effect && effect.request === id);
    if (isFinal) this.#requests.delete(id);
    this.#carryOut(effects);
    return isFinal;
  }

  async close(): Promise<void> {
    clearInterval(this.#ticker);
    await Promise.all([...this.#subscriptions.values()].map((subscription) => subscription.close()));
    this.#subscriptions.clear();
  }

  #carryOut(effects: readonly Effect[]): void {
    for (const effect of effects) {
      switch (effect.kind) {
        case "place":
          this.#requests.get(effect.request)?.place(effect);
          break;
        case "hold":
          break;
        case "shed": {
          const driven = this.#requests.get(effect.request);
          this.#requests.delete(effect.request);
          driven?.shed(effect.reason);
          break;
        }
        case "replay":
          this.#subscriptions.get(effect.replica)?.replay(effect.fromEventId, effect.toEventId);
          break;
        case "resync":
          this.#subscriptions.get(effect.replica)?.resync();
          break;
      }
    }
  }
}
