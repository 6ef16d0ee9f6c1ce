import type { Nanoseconds } from "../../core/clock.ts";
import type { Effect } from "../../core/effects.ts";
import type { FeedCapabilities, KvEvent, ReplicaSnapshot } from "../../core/kv-index/types.ts";
import type { Ending } from "../../core/open-request.ts";
import { PeerBooks, type PeerNews } from "../../core/peer-books.ts";
import type { ReplicaSpec } from "../../core/replica.ts";
import { hashString } from "../../core/rng.ts";
import type { RoutedRequest } from "../../core/routed-request.ts";
import type { Router } from "../../core/router.ts";
import type { FleetRouter } from "./types.ts";

interface LateNews {
  readonly dueNs: Nanoseconds;
  readonly from: number;
  readonly news: PeerNews;
}

/**
 * Several routers in front of one fleet that tell each other of their requests, a while later. As in `SplitRouter` each request
 * goes to one of them by its id, and all hear every KV event.
 */
export class SharingRouter implements FleetRouter {
  readonly #routers: readonly Router[];
  readonly #books: readonly PeerBooks[];
  readonly #delayNs: Nanoseconds;
  readonly #requests = new Map<string, RoutedRequest>();
  /** In the order in which they were sent, which is that in which they arrive. */
  readonly #underWay: LateNews[] = [];
  #heard = 0;

  constructor(routers: readonly Router[], delayNs: Nanoseconds) {
    this.#routers = routers;
    this.#books = routers.map((router) => new PeerBooks(router));
    this.#delayNs = delayNs;
  }

  get queued(): number {
    return this.#routers.reduce((sum, router) => sum + router.queued, 0);
  }

  addReplica(spec: ReplicaSpec, feed?: FeedCapabilities): number {
    let replica = 0;
    for (const router of this.#routers) replica = router.addReplica(spec, feed);
    return replica;
  }

  removeReplica(replica: number, nowNs: Nanoseconds): Effect[] {
    return this.#all((router) => router.removeReplica(replica, nowNs), nowNs);
  }

  offer(request: RoutedRequest, nowNs: Nanoseconds): Effect[] {
    this.#requests.set(request.id, request);
    return this.#one(request.id, nowNs, (router) => router.offer(request, nowNs));
  }

  sent(id: string, nowNs: Nanoseconds): void {
    this.#routers[this.#at(id)].sent(id, nowNs);
  }

  firstToken(id: string, nowNs: Nanoseconds): Effect[] {
    this.#tell(this.#at(id), { kind: "first-token", request: id }, nowNs);
    return this.#one(id, nowNs, (router) => router.firstToken(id, nowNs));
  }

  grew(id: string, tokens: number, nowNs: Nanoseconds): Effect[] {
    this.#tell(this.#at(id), { kind: "grew", request: id, tokens }, nowNs);
    return this.#one(id, nowNs, (router) => router.grew(id, tokens, nowNs));
  }

  ended(id: string, ending: Ending, nowNs: Nanoseconds): Effect[] {
    const kept = ending.kept?.sequence.subarray(0, 2 * ending.kept.blocks);
    this.#tell(this.#at(id), { kind: "ended", request: id, kept }, nowNs);
    const effects = this.#one(id, nowNs, (router) => router.ended(id, ending, nowNs));
    if (!this.#routers[this.#at(id)].isOpen(id)) this.#requests.delete(id);
    return effects;
  }

  applyEvent(replica: number, event: KvEvent, nowNs: Nanoseconds): Effect[] {
    return this.#all((router) => router.applyEvent(replica, event, nowNs), nowNs);
  }

  replayUnavailable(replica: number, nowNs: Nanoseconds): Effect[] {
    return this.#all((router) => router.replayUnavailable(replica, nowNs), nowNs);
  }

  restore(replica: number, snapshot: ReplicaSnapshot, nowNs: Nanoseconds): Effect[] {
    return this.#all((router) => router.restore(replica, snapshot, nowNs), nowNs);
  }

  tick(nowNs: Nanoseconds): Effect[] {
    this.#hear(nowNs);
    return this.#all((router) => router.tick(nowNs), nowNs);
  }

  #one(id: string, nowNs: Nanoseconds, call: (router: Router) => Effect[]): Effect[] {
    this.#hear(nowNs);
    const at = this.#at(id);
    return this.#told(at, call(this.#routers[at]), nowNs);
  }

  #all(call: (router: Router) => Effect[], nowNs: Nanoseconds): Effect[] {
    return this.#routers.flatMap((router, at) => this.#told(at, call(router), nowNs));
  }

  /** Passes on what a router has placed. */
  #told(at: number, effects: Effect[], nowNs: Nanoseconds): Effect[] {
    for (const effect of effects) {
      const request = effect.kind === "place" ? this.#requests.get(effect.request) : undefined;
      if (effect.kind !== "place" || request === undefined) continue;
      const { blocks, promptTokens, sequence, id } = request;
      const replica = this.#routers[at].fleet.name(effect.replica);
      const { predictedCachedTokens: cachedTokens } = effect;
      const known = sequence.subarray(0, 2 * blocks);
      this.#tell(at, { kind: "placed", request: id, replica, promptTokens, cachedTokens, sequence: known }, nowNs);
    }
    return effects;
  }

  #tell(from: number, news: PeerNews, nowNs: Nanoseconds): void {
    this.#underWay.push({ dueNs: nowNs + this.#delayNs, from, news });
  }

  /** Delivers what has arrived by now. */
  #hear(nowNs: Nanoseconds): void {
    for (; this.#heard < this.#underWay.length && this.#underWay[this.#heard].dueNs <= nowNs; this.#heard++) {
      const { from, news, dueNs } = this.#underWay[this.#heard];
      for (const [at, books] of this.#books.entries()) if (at !== from) books.hear(`router-${from}`, news, dueNs);
    }
    if (this.#heard < COMPACT_AFTER) return;
    this.#underWay.splice(0, this.#heard);
    this.#heard = 0;
  }

  #at(id: string): number {
    return hashString(id) % this.#routers.length;
  }
}

/** News that were heard are dropped a lot at a time. */
const COMPACT_AFTER = 4096;
