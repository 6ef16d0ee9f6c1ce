import type { Nanoseconds } from "../../core/clock.ts";
import type { Effect } from "../../core/effects.ts";
import type { FeedCapabilities, KvEvent, ReplicaSnapshot } from "../../core/kv-index/types.ts";
import type { Ending } from "../../core/open-request.ts";
import type { ReplicaSpec } from "../../core/replica.ts";
import { hashString } from "../../core/rng.ts";
import type { RoutedRequest } from "../../core/routed-request.ts";
import type { Router } from "../../core/router.ts";
import type { FleetRouter } from "./types.ts";

/**
 * Several routers in front of one fleet that do not talk to each other: each request goes to one of them by its id, each
 * knows of its own requests alone, and all of them hear every KV event.
 */
export class SplitRouter implements FleetRouter {
  readonly #routers: readonly Router[];

  constructor(routers: readonly Router[]) {
    this.#routers = routers;
  }

  get queued(): number {
    let queued = 0;
    for (const router of this.#routers) queued += router.queued;
    return queued;
  }

  /** All routers number the replicas alike, because they are told of them in the same order. */
  addReplica(spec: ReplicaSpec, feed?: FeedCapabilities): number {
    let replica = 0;
    for (const router of this.#routers) replica = router.addReplica(spec, feed);
    return replica;
  }

  removeReplica(replica: number, nowNs: Nanoseconds): Effect[] {
    return this.#all((router) => router.removeReplica(replica, nowNs));
  }

  offer(request: RoutedRequest, nowNs: Nanoseconds): Effect[] {
    return this.#routerOf(request.id).offer(request, nowNs);
  }

  sent(id: string, nowNs: Nanoseconds): void {
    this.#routerOf(id).sent(id, nowNs);
  }

  firstToken(id: string, nowNs: Nanoseconds): Effect[] {
    return this.#routerOf(id).firstToken(id, nowNs);
  }

  grew(id: string, tokens: number, nowNs: Nanoseconds): Effect[] {
    return this.#routerOf(id).grew(id, tokens, nowNs);
  }

  ended(id: string, ending: Ending, nowNs: Nanoseconds): Effect[] {
    return this.#routerOf(id).ended(id, ending, nowNs);
  }

  applyEvent(replica: number, event: KvEvent, nowNs: Nanoseconds): Effect[] {
    return this.#all((router) => router.applyEvent(replica, event, nowNs));
  }

  replayUnavailable(replica: number, nowNs: Nanoseconds): Effect[] {
    return this.#all((router) => router.replayUnavailable(replica, nowNs));
  }

  restore(replica: number, snapshot: ReplicaSnapshot, nowNs: Nanoseconds): Effect[] {
    return this.#all((router) => router.restore(replica, snapshot, nowNs));
  }

  tick(nowNs: Nanoseconds): Effect[] {
    return this.#all((router) => router.tick(nowNs));
  }

  #all(tell: (router: Router) => Effect[]): Effect[] {
    return this.#routers.flatMap(tell);
  }

  #routerOf(id: string): Router {
    return this.#routers[hashString(id) % this.#routers.length];
  }
}
