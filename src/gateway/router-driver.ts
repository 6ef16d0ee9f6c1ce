import type { ShedReason } from "../core/admission/types.ts";
import type { Clock, Nanoseconds } from "../core/clock.ts";
import type { Effect, Place, Replay, Resync } from "../core/effects.ts";
import type { Ending } from "../core/open-request.ts";
import type { Policy } from "../core/policy/types.ts";
import type { RoutedRequest } from "../core/routed-request.ts";
import type { Router } from "../core/router.ts";
import { TimedPolicy } from "./timed-policy.ts";

/** A request as the driver sees it: told where to go, or that it is turned away. */
export interface DrivenRequest {
  place(placement: Place): void;
  shed(reason: ShedReason): void;
}

/** Where the time of a routing decision went: up to the policy, in the policy, and after it. */
export interface DecisionTimes {
  readonly matchNs: Nanoseconds;
  readonly scoreNs: Nanoseconds;
  readonly recordNs: Nanoseconds;
}

export interface RouterDriverOptions {
  readonly router: Router;
  readonly clock: Clock;
  /** Where lost events, or the whole state of a replica, are asked for. */
  readonly requestEvents: (effect: Replay | Resync) => void;
  /** Told how long each decision took, when it has been carried out. */
  readonly decided?: (times: DecisionTimes) => void;
}

/**
 * Runs a router by the wall clock: tells it what happens to requests and when, and carries out what it answers. Nothing
 * else offers requests to it or reports their ends; who is in the fleet, and what their caches hold, is the fleet's to say.
 */
export class RouterDriver {
  readonly router: Router;
  readonly #options: RouterDriverOptions;
  readonly #clock: Clock;
  readonly #requests = new Map<string, DrivenRequest>();
  #policy: TimedPolicy;

  constructor(options: RouterDriverOptions) {
    this.router = options.router;
    this.#clock = options.clock;
    this.#options = options;
    this.#policy = new TimedPolicy(this.router.policy, this.#clock);
    this.router.setPolicy(this.#policy);
  }

  /** Requests that have not ended. */
  get open(): number {
    return this.#requests.size;
  }

  setPolicy(policy: Policy): void {
    this.#policy = new TimedPolicy(policy, this.#clock);
    this.router.setPolicy(this.#policy);
  }

  offer(request: RoutedRequest, driven: DrivenRequest): void {
    this.#requests.set(request.id, driven);
    const nowNs = this.#clock.nowNs();
    const policy = this.#policy;
    policy.restart();
    const effects = this.router.offer(request, nowNs);
    const endedNs = this.#clock.nowNs();
    const { askedNs = endedNs, choosingNs } = policy;
    this.carryOut(effects);
    const recordNs = endedNs - askedNs - choosingNs;
    this.#options.decided?.({ matchNs: askedNs - nowNs, scoreNs: choosingNs, recordNs });
  }

  sent(id: string): void {
    this.router.sent(id, this.#clock.nowNs());
  }

  firstToken(id: string): void {
    this.carryOut(this.router.firstToken(id, this.#clock.nowNs()));
  }

  grew(id: string, tokens: number): void {
    this.carryOut(this.router.grew(id, tokens, this.#clock.nowNs()));
  }

  /** Reports an end; true if it was final, false if the router tries again, keeps the request waiting or turned it away. */
  ended(id: string, ending: Ending): boolean {
    const effects = this.router.ended(id, ending, this.#clock.nowNs());
    const isFinal = !effects.some((effect) => "request" in effect && effect.request === id);
    if (isFinal) this.#requests.delete(id);
    this.carryOut(effects);
    return isFinal;
  }

  /** Time has passed. */
  tick(): void {
    this.carryOut(this.router.tick(this.#clock.nowNs()));
  }

  carryOut(effects: readonly Effect[]): void {
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
        case "resync":
          this.#options.requestEvents(effect);
          break;
      }
    }
  }
}
