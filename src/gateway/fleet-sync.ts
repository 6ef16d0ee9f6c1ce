import { isDeepStrictEqual } from "node:util";
import { NS_PER_SECOND, type Clock, type Nanoseconds } from "../core/clock.ts";
import type { Effect, Replay, Resync } from "../core/effects.ts";
import { WarmpathError } from "../core/errors.ts";
import type { FeedState } from "../core/kv-index/event-feed.ts";
import type { ReplicaSpec, ReplicaState } from "../core/replica.ts";
import type { ReportedLoad } from "../core/load/load-description.ts";
import type { Router } from "../core/router.ts";
import type { DiscoveredWorker, DiscoveryListener } from "../planes/discovery/types.ts";
import type { EventAddress, EventListener, EventPlane, EventSubscription } from "../planes/event/types.ts";
import type { LoadPlane, LoadWatch } from "../planes/load/types.ts";
import type { CircuitState } from "./health/circuit-breaker.ts";

export interface FleetSyncOptions {
  readonly router: Router;
  readonly clock: Clock;
  /** Carries out what the router wants of requests; what it wants of events is carried out here. */
  readonly carryOut: (effects: readonly Effect[]) => void;
  /** Where a worker's events come from; the cache of one without is guessed. */
  readonly events?: (worker: DiscoveredWorker) => EventPlane | undefined;
  /** Who asks a worker for its load, where it does not say it with its events. */
  readonly load?: (worker: DiscoveredWorker) => LoadPlane | undefined;
  /** A replica has its number; nothing is placed on it before this returns. */
  readonly joined?: (replica: number, worker: DiscoveredWorker, dpRank: number) => void;
  /** A replica is gone; its number may be another's at once. */
  readonly left?: (replica: number, worker: DiscoveredWorker) => void;
  readonly problem?: (message: string) => void;
  /** A worker that has not told its state by then serves without; its index state says so. */
  readonly caughtUpWithinNs?: Nanoseconds;
}

/** `catching-up` is not known well enough to be given work yet. */
export type FleetPhase = "catching-up" | "ready" | "unhealthy" | "draining";

/** One replica of a worker that was found. */
export interface FleetMember {
  readonly worker: DiscoveredWorker;
  readonly dpRank: number;
  readonly replica: number;
  readonly phase: FleetPhase;
  readonly circuit: CircuitState;
  readonly indexState: FeedState | "approximate";
}

interface Member {
  readonly worker: DiscoveredWorker;
  readonly dpRank: number;
  readonly replica: number;
  readonly joinedNs: Nanoseconds;
  /** The source has told all it can; the feed may still be sorting it out. */
  hasHeardAll: boolean;
  isCaughtUp: boolean;
  circuit: CircuitState;
  isOnTrial: boolean;
  isDraining: boolean;
  isGone: boolean;
  subscription: EventSubscription | undefined;
  loadWatch: LoadWatch | undefined;
}

/** Requests at a time that a worker may have to prove itself with. */
const TRIALS = 1;

const DEFAULT_CAUGHT_UP_WITHIN_NS: Nanoseconds = 5 * NS_PER_SECOND;

/**
 * Keeps the router's fleet the same as what is discovered. A worker that appears is listened to and catches up before it is
 * given work; one that leaves loses its blocks at once. Nobody else adds, removes or changes the state of replicas.
 */
export class FleetSync implements DiscoveryListener {
  readonly #options: FleetSyncOptions;
  /** All that were found, whether there is room for them or not. */
  readonly #found = new Map<string, DiscoveredWorker>();
  readonly #members = new Map<string, Member[]>();
  readonly #byReplica = new Map<number, Member>();
  /** Names of workers that are to get nothing new. */
  readonly #drained = new Set<string>();
  readonly #closing = new Set<Promise<void>>();

  constructor(options: FleetSyncOptions) {
    this.#options = options;
  }

  get workers(): FleetMember[] {
    return [...this.#byReplica.values()].map((member) => ({
      worker: member.worker,
      dpRank: member.dpRank,
      replica: member.replica,
      phase: phaseOf(member),
      circuit: member.circuit,
      indexState: this.#options.router.indexState(member.replica),
    }));
  }

  appeared(worker: DiscoveredWorker): void {
    if (this.#members.has(worker.name)) {
      this.changed(worker);
      return;
    }
    this.#found.set(worker.name, worker);
    this.#members.set(worker.name, []);
    this.#joinAll(worker);
  }

  /** A worker that is not what it was is another worker under the same name; whether it is to get work was said of the name. */
  changed(worker: DiscoveredWorker): void {
    const { name } = worker;
    if (isDeepStrictEqual(this.#found.get(name), worker)) return;
    this.#leaveAll(name);
    this.appeared(worker);
    this.#fillUp();
  }

  left(name: string): void {
    this.#drained.delete(name);
    this.#leaveAll(name);
    this.#fillUp();
  }

  problem(message: string): void {
    this.#options.problem?.(message);
  }

  /** Carries out what the router asks of a replica's event source. */
  request(effect: Replay | Resync): void {
    const subscription = this.#byReplica.get(effect.replica)?.subscription;
    if (effect.kind === "replay") subscription?.replay(effect.fromEventId, effect.toEventId);
    else subscription?.resync();
  }

  /** Whether a worker is fit: with an open circuit it gets nothing new, with a half-open one a request on trial. */
  setCircuit(name: string, circuit: CircuitState): void {
    this.#update(name, (member) => (member.circuit = circuit));
  }

  /** Undefined for a replica that nobody found. */
  circuitOf(replica: number): CircuitState | undefined {
    return this.#byReplica.get(replica)?.circuit;
  }

  /** Lets a worker finish what it has and gives it nothing new. */
  drain(name: string): void {
    this.#drained.add(name);
    this.#update(name, (member) => (member.isDraining = true));
  }

  undrain(name: string): void {
    this.#drained.delete(name);
    this.#update(name, (member) => (member.isDraining = false));
  }

  /** Time has passed: who could not tell its state by now serves without. */
  tick(): void {
    const { clock, caughtUpWithinNs = DEFAULT_CAUGHT_UP_WITHIN_NS } = this.#options;
    const nowNs = clock.nowNs();
    this.#limitTrials();
    for (const member of this.#byReplica.values()) {
      if (member.isCaughtUp) continue;
      if (nowNs - member.joinedNs >= caughtUpWithinNs) this.#serve(member);
      else this.#serveIfKnown(member);
    }
  }

  /** Stops listening to everybody; the router keeps what it knows. */
  async close(): Promise<void> {
    for (const member of this.#byReplica.values()) this.#stopListening(member);
    await Promise.all(this.#closing);
  }

  #joinAll(worker: DiscoveredWorker): void {
    const { fleet } = this.#options.router;
    const members = this.#members.get(worker.name) ?? [];
    const ranks = worker.dpRanks ?? 1;
    for (let dpRank = 0; dpRank < ranks; dpRank++) {
      if (members.some((member) => member.dpRank === dpRank)) continue;
      const member = this.#join(worker, dpRank);
      if (member !== undefined) members.push(member);
      // Where one has found no room the others will find none either.
      else if (fleet.size === fleet.maxReplicas) return;
    }
  }

  #leaveAll(name: string): void {
    const members = this.#members.get(name) ?? [];
    this.#found.delete(name);
    this.#members.delete(name);
    for (const member of members) this.#leave(member);
  }

  /** Somebody has left: whoever found no place before may find one now. */
  #fillUp(): void {
    const { fleet } = this.#options.router;
    for (const [name, worker] of this.#found) {
      if (fleet.size === fleet.maxReplicas) return;
      if ((this.#members.get(name)?.length ?? 0) < (worker.dpRanks ?? 1)) this.#joinAll(worker);
    }
  }

  #join(worker: DiscoveredWorker, dpRank: number): Member | undefined {
    const { router, clock, joined } = this.#options;
    const events = this.#eventsOf(worker);
    const replica = this.#addReplica(specOf(worker, dpRank, router.blockTokens), events);
    if (replica === undefined) return undefined;
    const member: Member = {
      worker,
      dpRank,
      replica,
      joinedNs: clock.nowNs(),
      hasHeardAll: false,
      isCaughtUp: events === undefined,
      circuit: "closed",
      isOnTrial: false,
      isDraining: this.#drained.has(worker.name),
      isGone: false,
      subscription: undefined,
      loadWatch: undefined,
    };
    this.#byReplica.set(replica, member);
    // A new replica is ready by birth, so it is stopped before anybody can decide anything.
    this.#setState(member, "down");
    joined?.(replica, worker, dpRank);
    this.#listen(member, events);
    if (member.isCaughtUp) this.#serve(member);
    return member;
  }

  #addReplica(spec: ReplicaSpec, events: EventPlane | undefined): number | undefined {
    try {
      return this.#options.router.addReplica(spec, events?.capabilities);
    } catch (error) {
      // More workers than there is room for, or two of one name, are the world's doing and not a mistake of the program.
      if (!WarmpathError.isInstance(error)) throw error;
      this.problem(error.message);
      return undefined;
    }
  }

  #eventsOf(worker: DiscoveredWorker): EventPlane | undefined {
    const { router, events } = this.#options;
    const { blockTokens } = worker;
    if (blockTokens === undefined || blockTokens === router.blockTokens) return events?.(worker);
    const blocks = `blocks of ${blockTokens} tokens, the router counts in blocks of ${router.blockTokens}`;
    this.problem(`worker ${worker.name} has ${blocks}; its cache is guessed`);
    return undefined;
  }

  #listen(member: Member, events: EventPlane | undefined): void {
    const { worker, dpRank } = member;
    if (events !== undefined) this.#subscribe(member, events);
    member.loadWatch = this.#options.load?.(worker)?.watch(
      worker.url,
      {
        load: (load) => this.#report(member, load),
        // Ranks have one address, and what is wrong with it is said by the first.
        problem: (message) => (dpRank === 0 ? this.problem(message) : undefined),
      },
      worker.dpRanks === undefined ? undefined : dpRank,
    );
  }

  /** A worker whose events cannot be had serves all the same: its address is somebody's mistake, and nobody else's loss. */
  #subscribe(member: Member, events: EventPlane): void {
    const { router } = this.#options;
    const { worker, dpRank, replica } = member;
    const name = router.fleet.name(replica);
    try {
      member.subscription = events.subscribe(name, this.#listener(member), addressOf(worker, dpRank));
    } catch (error) {
      this.problem(`worker ${name}: its events cannot be heard, its cache is guessed; ${(error as Error).message}`);
      router.withoutEvents(replica);
      member.isCaughtUp = true;
      return;
    }
    member.subscription.catchUp();
  }

  #listener(member: Member): EventListener {
    const { router, clock } = this.#options;
    const { replica } = member;
    const heard = (effectsOf: (nowNs: Nanoseconds) => readonly Effect[]): void => {
      if (member.isGone) return;
      this.#carryOut(effectsOf(clock.nowNs()));
      if (!member.isCaughtUp) this.#serveIfKnown(member);
    };
    return {
      event: (event) => heard((nowNs) => router.applyEvent(replica, event, nowNs)),
      snapshot: (snapshot) => heard((nowNs) => router.restore(replica, snapshot, nowNs)),
      replayUnavailable: () => heard((nowNs) => router.replayUnavailable(replica, nowNs)),
      load: (load) => this.#report(member, load),
      problem: (message) => this.problem(`worker ${member.worker.name}: ${message}`),
      caughtUp: () =>
        heard(() => {
          member.hasHeardAll = true;
          return [];
        }),
    };
  }

  #report({ isGone, replica, worker }: Member, load: ReportedLoad): void {
    if (isGone) return;
    const { router, clock } = this.#options;
    const { kvBlocks, blockTokens = worker.blockTokens, ...rest } = load;
    const blocks = inBlocksOf(router.blockTokens, kvBlocks, blockTokens);
    router.report(replica, { ...rest, kvBlocks: blocks }, clock.nowNs());
  }

  /** Everything was told and put in order, or the rest is known to be lost. */
  #serveIfKnown(member: Member): void {
    const state = this.#options.router.indexState(member.replica);
    if (member.hasHeardAll && state !== "stale" && state !== "resyncing") this.#serve(member);
  }

  #serve(member: Member): void {
    member.isCaughtUp = true;
    this.#setState(member, stateOf(member));
  }

  #update(name: string, change: (member: Member) => void): void {
    const members = this.#members.get(name) ?? [];
    for (const member of members) change(member);
    // Before anybody is ready, or all that waits would be placed there at once.
    this.#limitTrials();
    for (const member of members) this.#setState(member, stateOf(member));
  }

  /** With nobody proven to fall back on, whoever may be well again is better than a refusal. */
  #limitTrials(): void {
    let hasProven = false;
    for (const member of this.#byReplica.values()) {
      hasProven ||= member.circuit === "closed" && stateOf(member) === "ready";
    }
    for (const member of this.#byReplica.values()) {
      const isOnTrial = hasProven && member.circuit === "half-open";
      if (member.isOnTrial === isOnTrial) continue;
      member.isOnTrial = isOnTrial;
      this.#options.router.setTrials(member.replica, isOnTrial ? TRIALS : undefined);
    }
  }

  #setState(member: Member, state: ReplicaState): void {
    const { router, clock } = this.#options;
    if (router.fleet.state(member.replica) === state) return;
    this.#carryOut(router.setState(member.replica, state, clock.nowNs()));
  }

  #leave(member: Member): void {
    const { router, clock, left } = this.#options;
    const { replica } = member;
    member.isGone = true;
    this.#byReplica.delete(replica);
    this.#stopListening(member);
    const effects = router.removeReplica(replica, clock.nowNs());
    left?.(replica, member.worker);
    this.#carryOut(effects);
  }

  #stopListening(member: Member): void {
    for (const listening of [member.subscription, member.loadWatch]) {
      if (listening === undefined) continue;
      const closing = listening.close().finally(() => this.#closing.delete(closing));
      this.#closing.add(closing);
    }
    member.subscription = undefined;
    member.loadWatch = undefined;
  }

  #carryOut(effects: readonly Effect[]): void {
    const others: Effect[] = [];
    for (const effect of effects) {
      if (effect.kind === "replay" || effect.kind === "resync") this.request(effect);
      else others.push(effect);
    }
    if (others.length > 0) this.#options.carryOut(others);
  }
}

/** A pool counted in blocks of another size. */
function inBlocksOf(blockTokens: number, kvBlocks: number | undefined, countedIn = blockTokens): number | undefined {
  return kvBlocks === undefined ? undefined : Math.max(1, Math.floor((kvBlocks * countedIn) / blockTokens));
}

function specOf(worker: DiscoveredWorker, dpRank: number, blockTokens: number): ReplicaSpec {
  const { name, batchSlots, stepTokens } = worker;
  const kvBlocks = inBlocksOf(blockTokens, worker.kvBlocks, worker.blockTokens);
  return {
    worker: name,
    dpRank,
    ...(batchSlots !== undefined && { batchSlots }),
    ...(kvBlocks !== undefined && { kvBlocks }),
    ...(stepTokens !== undefined && { stepTokens }),
  };
}

function addressOf({ url, events }: DiscoveredWorker, dpRank: number): EventAddress {
  return { ...(events ?? { url }), dpRank };
}

function stateOf(member: Member): ReplicaState {
  if (member.isDraining) return "draining";
  return member.isCaughtUp && member.circuit !== "open" ? "ready" : "down";
}

function phaseOf(member: Member): FleetPhase {
  if (member.isDraining) return "draining";
  if (member.circuit === "open") return "unhealthy";
  return member.isCaughtUp ? "ready" : "catching-up";
}
