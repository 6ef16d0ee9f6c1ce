import type { ShedReason } from "../core/admission/types.ts";
import type { Clock, Nanoseconds } from "../core/clock.ts";
import type { Effect, Place, Replay, Resync } from "../core/effects.ts";
import type { Ending } from "../core/open-request.ts";
import type { Policy } from "../core/policy/types.ts";
import type { RoutedRequest } from "../core/routed-request.ts";
import type { Router } from "../core/router.ts";
import type { RouterRules } from "../core/router-options.ts";
import { TimedPolicy } from "./timed-policy.ts";

/** A request as the driver sees it: told where to go, or that it is turned away. */
export interface DrivenRequest {
  place(placement: Place): void;
  shed(reason: ShedReason): void;
}

/** Told what happens to requests, as it happens. */
export interface RequestObserver {
  placed(request: RoutedRequest, place: Place): void;
  firstToken(id: string): void;
  grew(id: string, tokens: number): void;
  /** An attempt has ended; it is placed again if it was not the last. */
  ended(id: string, ending: Ending): void;
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
  readonly observer?: RequestObserver | undefined;
}

interface OpenDrive {
  readonly request: RoutedRequest;
  readonly driven: DrivenRequest;
}

/**
 * Runs a router by the wall clock: tells it what happens to requests and when, and carries out what it answers. Nothing
 * else offers requests to it or reports their ends; who is in the fleet, and what their caches hold, is the fleet's to say.
 */
export class RouterDriver {
  readonly router: Router;
  readonly #options: RouterDriverOptions;
  readonly #clock: Clock;
  readonly #requests = new Map<string, OpenDrive>();
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

  setRules(rules: RouterRules): void {
    this.carryOut(this.router.setRules(rules, this.#clock.nowNs()));
  }

  offer(request: RoutedRequest, driven: DrivenRequest): void {
    this.#requests.set(request.id, { request, driven });
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
    this.#options.observer?.firstToken(id);
    this.carryOut(this.router.firstToken(id, this.#clock.nowNs()));
  }

  grew(id: string, tokens: number): void {
    this.#options.observer?.grew(id, tokens);
    this.carryOut(this.router.grew(id, tokens, this.#clock.nowNs()));
  }

  /** Reports an end; true if it was final, false if the router tries again, keeps the request waiting or turned it away. */
  ended(id: string, ending: Ending): boolean {
    this.#options.observer?.ended(id, ending);
    const { continuation } = ending;
    const open = this.#requests.get(id);
    // Whoever watches is told of the prompt that is placed from now on.
    if (open !== undefined && continuation !== undefined) {
      this.#requests.set(id, { ...open, request: { ...open.request, ...continuation } });
    }
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
        case "place": {
          const open = this.#requests.get(effect.request);
          if (open === undefined) break;
          this.#options.observer?.placed(open.request, effect);
          open.driven.place(effect);
          break;
        }
        case "hold":
          break;
        case "shed": {
          const open = this.#requests.get(effect.request);
          this.#requests.delete(effect.request);
          open?.driven.shed(effect.reason);
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
