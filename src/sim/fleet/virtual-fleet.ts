import { NS_PER_MS, type Nanoseconds } from "../../core/clock.ts";
import type { Effect, Place } from "../../core/effects.ts";
import { WarmpathError } from "../../core/errors.ts";
import { fullBlocks } from "../../core/hash.ts";
import type { KvEvent } from "../../core/kv-index/types.ts";
import type { Account } from "../../core/accounts.ts";
import { emptyList } from "../engine/empty-list.ts";
import type { EngineFinish, EngineGrowth } from "../engine/engine-request.ts";
import { EventClass, EventQueue } from "../event-queue.ts";
import { fleetResult } from "./fleet-result.ts";
import { Flight } from "./flight.ts";
import { InFlightTracker } from "./in-flight-tracker.ts";
import type { SignalChannel } from "./signal-channel.ts";
import { createWorker } from "./create-worker.ts";
import { SessionMemory } from "./session-memory.ts";
import type { SimWorker } from "./sim-worker.ts";
import { type FleetDelays, type FleetOptions, type FleetResult, type FleetRouter, NO_DELAYS } from "./types.ts";
import { WindowMeter } from "./window-meter.ts";

/** Without a queue in the router, ticks only let expectations expire, and may be this much rarer. */
const IDLE_TICKS = 10;

const NO_HASHES = new Uint32Array(0);

const STEP_END = 0;
const CLIENT_END = 1;
const TIMEOUT = 2;
const FIRST_TOKEN = 3;
const ENDED = 4;
const AT_ROUTER = 5;
const AT_WORKER = 6;
const TICK = 7;
const STEP_START = 8;
const ANSWER = 9;
const CRASH = 10;

/** What a worker was asked for by the router's index. */
interface FeedQuestion {
  readonly worker: number;
  readonly range: readonly [number, number] | undefined;
}

/** Runs a workload through a router and simulated workers, in virtual time. Equal options give equal results. */
export function simulateFleet(options: FleetOptions): FleetResult {
  return new VirtualFleet(options).run();
}

/**
 * The fleet on an event queue. Workers run ahead of nobody: each has at most one stretch of steps under way, and before the
 * router decides anything all of them are brought up to that moment and everything that has arrived by then is handed over.
 * KV events and growth are therefore not queued one by one; nobody could tell the difference.
 */
class VirtualFleet {
  readonly #options: FleetOptions;
  readonly #router: FleetRouter;
  readonly #delays: FleetDelays;
  readonly #queue = new EventQueue();
  readonly #workers: SimWorker[];
  /** When the router may next hear something of each worker, which is looked at before every decision. */
  readonly #newsNs: Float64Array;
  /** Worker by the router's number for it. */
  readonly #byReplica: SimWorker[] = [];
  readonly #flights: Flight[] = [];
  readonly #flightById = new Map<string, Flight>();
  readonly #sessions: SessionMemory;
  readonly #tracker: InFlightTracker;
  readonly #meter: WindowMeter;
  readonly #questions: FeedQuestion[] = [];
  readonly #offerUntilNs: Nanoseconds;
  readonly #tickNs: Nanoseconds;
  #lastSentNs = 0;
  /** When the next request is sent; changes when one is taken or ends. */
  #dueNs = Number.POSITIVE_INFINITY;
  #open = 0;
  #events = 0;
  #kvEvents = 0;
  #nowNs = 0;
  #nextTickNs = Number.POSITIVE_INFINITY;
  readonly #hearGrowth = ({ key, tokens }: EngineGrowth, atNs: Nanoseconds): void =>
    this.#carryOut(this.#router.grew(this.#flights[key].id, tokens, atNs));

  constructor(options: FleetOptions) {
    if (options.workers.length === 0) throw new WarmpathError("WP_INVALID_INPUT", "a fleet needs at least one worker");
    this.#options = options;
    this.#router = options.router;
    this.#delays = { ...NO_DELAYS, ...options.delays };
    this.#offerUntilNs = options.offerUntilNs ?? Number.POSITIVE_INFINITY;
    this.#tickNs = options.tickNs ?? 100 * NS_PER_MS;
    this.#sessions = new SessionMemory(options.blockTokens);
    this.#tracker = new InFlightTracker(options.workers.length);
    this.#newsNs = new Float64Array(options.workers.length).fill(Number.POSITIVE_INFINITY);
    this.#workers = options.workers.map((worker, index) => createWorker(worker, index, options, this.#delays));
    this.#meter = new WindowMeter(options.window, this.#workers);
    for (const worker of this.#workers) this.#byReplica[worker.replica] = worker;
    for (const [index, { crashNs }] of options.workers.entries()) {
      if (crashNs !== undefined) this.#push(crashNs, EventClass.signal, CRASH, index);
    }
  }

  run(): FleetResult {
    const queue = this.#queue;
    this.#dueNs = this.#options.source.nextDueNs();
    for (;;) {
      const dueNs = this.#dueNs;
      const isDue = dueNs < this.#offerUntilNs && dueNs < Number.POSITIVE_INFINITY;
      // What else happens at the moment of the last answer still belongs to the run.
      if (!isDue && this.#open === 0 && queue.nextNs > this.#nowNs) break;
      const isArrival =
        isDue && (dueNs < queue.nextNs || (dueNs === queue.nextNs && queue.nextClass > EventClass.arrival));
      if (!isDue && queue.nextNs > this.#drainEndNs()) break;
      const nextNs = isArrival ? dueNs : queue.nextNs;
      if (nextNs >= this.#meter.nextNs) this.#meter.passEdges(nextNs);
      this.#events += 1;
      if (isArrival) {
        this.#nowNs = Math.max(this.#nowNs, dueNs);
        this.#lastSentNs = this.#nowNs;
        this.#send();
      } else if (queue.take()) {
        this.#nowNs = queue.atNs;
        this.#dispatch(queue.kind, queue.payload, queue.version);
      } else break;
    }
    return this.#result();
  }

  /** When answers are no longer waited for. */
  #drainEndNs(): Nanoseconds {
    const fromNs = this.#offerUntilNs < Number.POSITIVE_INFINITY ? this.#offerUntilNs : this.#lastSentNs;
    return fromNs + (this.#options.drainNs ?? Number.POSITIVE_INFINITY);
  }

  #dispatch(kind: number, payload: number, version: number): void {
    switch (kind) {
      case STEP_END:
        return this.#endStep(this.#workers[payload], version);
      case STEP_START:
        return this.#startStep(this.#workers[payload]);
      case AT_ROUTER:
        return this.#offer(this.#flights[payload]);
      case AT_WORKER:
        return this.#submit(this.#flights[payload]);
      case FIRST_TOKEN:
        if (this.#router.queued > 0) this.#bringUp();
        return this.#carryOut(this.#router.firstToken(this.#flights[payload].id, this.#nowNs));
      case ENDED:
        return this.#routerEnded(this.#flights[payload]);
      case CLIENT_END:
        return this.#settle(this.#flights[payload]);
      case TIMEOUT:
        return this.#giveUp(this.#flights[payload]);
      case TICK:
        return this.#tick();
      case ANSWER:
        return this.#answer(this.#questions[payload]);
      case CRASH:
        return this.#crash(this.#workers[payload]);
    }
  }

  /** A client sends its request. */
  #send(): void {
    const { source, timeoutNs } = this.#options;
    this.#meter.sent(this.#nowNs);
    const request = source.take();
    this.#dueNs = source.nextDueNs();
    const { sequence, continuesTokens } = this.#sessions.identify(request);
    const flight = new Flight(this.#flights.length, request, sequence, continuesTokens);
    this.#flights.push(flight);
    this.#flightById.set(flight.id, flight);
    this.#open += 1;
    const { clientToRouterNs, frontendNs, frontendTokenNs } = this.#delays;
    const delayNs = clientToRouterNs + frontendNs + Math.round(frontendTokenNs * request.promptTokens);
    if (timeoutNs !== undefined) this.#push(this.#nowNs + timeoutNs, EventClass.completion, TIMEOUT, flight.index);
    if (this.#nextTickNs === Number.POSITIVE_INFINITY) this.#tickAt(this.#nowNs + IDLE_TICKS * this.#tickNs);
    if (delayNs === 0) this.#offer(flight);
    else this.#push(this.#nowNs + delayNs, EventClass.arrival, AT_ROUTER, flight.index);
  }

  #offer(flight: Flight): void {
    if (flight.isSettled) return;
    this.#bringUp();
    const { id, sequence } = flight;
    const { promptTokens, sessionName: session } = flight.request;
    const { blockTokens, maxOutputTokens } = this.#options;
    // The true length stays unknown to the router: only a bound that a client would send is passed on.
    const known = { id, promptTokens, sequence, blocks: fullBlocks(promptTokens, blockTokens), session };
    const routed = maxOutputTokens === undefined ? known : { ...known, maxOutputTokens };
    this.#carryOut(this.#router.offer(routed, this.#nowNs));
  }

  /** Brings every worker up to now and hands over what has arrived: only then may the router decide. */
  #bringUp(): void {
    const nowNs = this.#nowNs;
    const newsNs = this.#newsNs;
    for (let index = 0; index < newsNs.length; index++) if (newsNs[index] <= nowNs) this.#hearOf(this.#workers[index]);
  }

  #hearOf(worker: SimWorker): void {
    const nowNs = this.#nowNs;
    worker.engine.advanceTo(nowNs);
    worker.send();
    if (worker.kvEvents.nextNs <= nowNs)
      worker.kvEvents.deliver(nowNs, (event, atNs) => this.#apply(worker, event, atNs));
    if (worker.growth.nextNs <= nowNs) worker.growth.deliver(nowNs, this.#hearGrowth);
    this.#noteNews(worker);
  }

  /** Brings a worker up to now and puts what it has to say on its way. */
  #advance(worker: SimWorker): void {
    worker.engine.advanceTo(this.#nowNs);
    worker.send();
    this.#noteNews(worker);
  }

  #noteNews(worker: SimWorker): void {
    this.#newsNs[worker.index] = worker.nextNewsNs;
  }

  #apply(worker: SimWorker, event: KvEvent, atNs: Nanoseconds): void {
    this.#kvEvents += 1;
    this.#carryOut(this.#router.applyEvent(worker.replica, event, atNs));
  }

  /** Of most calls of the router nothing follows, so that what may is kept apart from whether anything does. */
  #carryOut(effects: readonly Effect[]): void {
    for (let i = 0; i < effects.length; i++) this.#carryOutOne(effects[i]);
  }

  #carryOutOne(effect: Effect): void {
    switch (effect.kind) {
      case "place":
        return this.#sendOn(effect);
      case "shed": {
        const flight = this.#flightOf(effect.request);
        flight.shedReason = effect.reason;
        flight.decision = effect.decision;
        return this.#answerClient(flight, "shed");
      }
      case "replay":
        return this.#ask(effect.replica, [effect.fromEventId, effect.toEventId]);
      case "resync":
        return this.#ask(effect.replica, undefined);
      case "hold":
        if (this.#nextTickNs > this.#nowNs + this.#tickNs) this.#tickAt(this.#nowNs + this.#tickNs);
    }
  }

  /** A request goes to the worker it was placed on. */
  #sendOn(place: Place): void {
    const flight = this.#flightOf(place.request);
    const worker = this.#byReplica[place.replica];
    flight.worker = worker.index;
    flight.workerName = worker.name;
    flight.attempts = place.attempt;
    flight.placedNs = this.#nowNs;
    flight.predictedCachedTokens = place.predictedCachedTokens;
    flight.decision = place.decision;
    flight.isOnWorker = true;
    this.#tracker.add(worker.index, this.#nowNs);
    this.#router.sent(flight.id, this.#nowNs);
    const wireNs = this.#delays.routerToWorkerNs;
    // Submitting only queues, and nobody looks before the next step: it need not wait for its turn.
    if (wireNs === 0) this.#submit(flight);
    else this.#push(this.#nowNs + wireNs, EventClass.routing, AT_WORKER, flight.index);
  }

  #flightOf(id: string): Flight {
    const flight = this.#flightById.get(id);
    if (flight === undefined) throw new WarmpathError("WP_UNKNOWN_REQUEST", `the router speaks of request ${id}`);
    return flight;
  }

  #submit(flight: Flight): void {
    // The client may have given up while the request was on the wire.
    if (flight.isSettled) return this.#leaveWorker(flight);
    const worker = this.#workers[flight.worker];
    if (worker.isDead) return this.#failAttempt(flight);
    const { engine } = worker;
    this.#advance(worker);
    const { sequence, continuesTokens } = flight;
    const { promptTokens, outputTokens } = flight.request;
    const maxOutputTokens = Math.max(outputTokens, this.#options.maxOutputTokens ?? 0);
    const request = { key: flight.index, promptTokens, outputTokens, maxOutputTokens, sequence, continuesTokens };
    const refusal = engine.submit(request, this.#nowNs);
    if (refusal !== undefined) {
      flight.failure = refusal;
      this.#leaveWorker(flight);
      this.#carryOut(this.#router.ended(flight.id, { outcome: "rejected", mayRetry: false }, this.#nowNs));
      return this.#answerClient(flight, "rejected");
    }
    flight.isInEngine = true;
    this.#schedule(worker);
  }

  /** Announces when the worker's step ends, where that has changed, or that one begins. */
  #schedule(worker: SimWorker): void {
    const { engine } = worker;
    this.#noteNews(worker);
    if (engine.isStepping) {
      if (engine.endNs === worker.endNs) return;
      worker.endNs = engine.endNs;
      worker.version += 1;
      this.#push(worker.endNs, EventClass.completion, STEP_END, worker.index, worker.version);
    } else if (!worker.isStartPending && engine.hasWork) {
      worker.isStartPending = true;
      this.#push(this.#nowNs, EventClass.stepStart, STEP_START, worker.index);
    }
  }

  #startStep(worker: SimWorker): void {
    worker.isStartPending = false;
    if (worker.isDead) return;
    const endNs = worker.engine.beginStep(this.#nowNs);
    if (endNs === undefined) return;
    // Some engines tell what they took for a step as soon as it begins.
    this.#advance(worker);
    worker.endNs = endNs;
    worker.version += 1;
    this.#push(endNs, EventClass.completion, STEP_END, worker.index, worker.version);
  }

  #endStep(worker: SimWorker, version: number): void {
    if (version !== worker.version) return;
    const { engine } = worker;
    const { firstTokens, finished } = engine.endStep(this.#nowNs);
    worker.endNs = -1;
    worker.send();
    this.#noteNews(worker);
    for (const { key, atNs } of firstTokens) {
      this.#flights[key].firstNs = atNs;
      this.#signal(worker.channels.firstToken, FIRST_TOKEN, key);
    }
    emptyList(firstTokens);
    this.#takeFinished(worker, finished);
    // Nothing else can happen before the next step begins, so it need not be queued.
    if (this.#queue.nextNs > this.#nowNs && this.#dueNs > this.#nowNs) this.#startStep(worker);
    else this.#schedule(worker);
  }

  #takeFinished(worker: SimWorker, finished: EngineFinish[]): void {
    for (const finish of finished) {
      const flight = this.#flights[finish.key];
      flight.isInEngine = false;
      this.#leaveWorker(flight);
      if (flight.isSettled) continue;
      flight.noteFinish(finish);
      if (this.#options.feed === undefined) flight.keep(this.#options.blockTokens);
      this.#signal(worker.channels.ended, ENDED, flight.index);
      this.#answerClient(flight, "completed");
    }
    emptyList(finished);
  }

  #signal(channel: SignalChannel, kind: number, flight: number): void {
    const arrivesNs = channel.arrivalNs(this.#nowNs);
    // With nobody waiting in the router the news changes no placement at this moment, and need not be queued.
    if (arrivesNs === this.#nowNs && this.#router.queued === 0) this.#dispatch(kind, flight, 0);
    else if (arrivesNs !== Number.POSITIVE_INFINITY) this.#push(arrivesNs, EventClass.signal, kind, flight);
  }

  #leaveWorker(flight: Flight): void {
    if (!flight.isOnWorker) return;
    flight.isOnWorker = false;
    this.#tracker.remove(flight.worker, this.#nowNs);
  }

  /** The router learns that a request is over, with all tokens that it has not counted yet. */
  #routerEnded(flight: Flight): void {
    if (this.#router.queued > 0) this.#bringUp();
    else this.#hearOf(this.#workers[flight.worker]);
    const { lastNs, unreportedTokens, cachedTokens, kept } = flight;
    if (lastNs === undefined) return;
    if (unreportedTokens > 0) this.#carryOut(this.#router.grew(flight.id, unreportedTokens, this.#nowNs));
    const ending = { outcome: "completed" as const, cachedTokens, kept };
    this.#carryOut(this.#router.ended(flight.id, ending, this.#nowNs));
    flight.kept = undefined;
  }

  #answerClient(flight: Flight, account: Account): void {
    flight.account = account;
    const toClientNs = this.#delays.workerToClientNs;
    if (toClientNs === 0) this.#settle(flight);
    else this.#push(this.#nowNs + toClientNs, EventClass.completion, CLIENT_END, flight.index);
  }

  #settle(flight: Flight): void {
    if (flight.isSettled) return;
    flight.isSettled = true;
    flight.endNs = this.#nowNs;
    // Hashes are most of what a request weighs, and a run may have a million of them.
    flight.sequence = NO_HASHES;
    this.#flightById.delete(flight.id);
    this.#open -= 1;
    const completed = flight.account === "completed";
    this.#options.source.ended(flight.request, { nowNs: this.#nowNs, completed, outputTokens: flight.outputTokens });
    this.#dueNs = this.#options.source.nextDueNs();
  }

  /** The client's patience is over; what the fleet still does for it is wasted. */
  #giveUp(flight: Flight): void {
    if (flight.isSettled || flight.account !== "unfinished") return;
    const nowNs = this.#nowNs;
    flight.account = "timedOut";
    if (flight.isInEngine) {
      const worker = this.#workers[flight.worker];
      this.#advance(worker);
      flight.noteProgress(worker.engine.progressOf(flight.index, nowNs));
      this.#settle(flight);
      worker.engine.cancel(flight.index, nowNs);
      this.#takeFinished(worker, worker.engine.effects.finished);
      this.#schedule(worker);
    } else this.#settle(flight);
    if (this.#router.queued > 0) this.#bringUp();
    this.#carryOut(this.#router.ended(flight.id, { outcome: "timedOut" }, nowNs));
  }

  /** A worker dies. The router hears of it at once, by broken connections, and of nothing that was under way. */
  #crash(worker: SimWorker): void {
    this.#bringUp();
    const { engine, replica, index } = worker;
    const nowNs = this.#nowNs;
    const lost = this.#flights.filter((flight) => flight.isInEngine && flight.worker === index);
    for (const flight of lost) if (!flight.isSettled) flight.noteProgress(engine.progressOf(flight.index, nowNs));
    worker.die(nowNs);
    this.#noteNews(worker);
    this.#carryOut(this.#router.removeReplica(replica, nowNs));
    for (const flight of lost) this.#failAttempt(flight);
  }

  /** A request's worker is gone. Unless its answer has begun, the router may place it again. */
  #failAttempt(flight: Flight): void {
    flight.isInEngine = false;
    this.#leaveWorker(flight);
    if (flight.isSettled) return;
    const mayRetry = flight.firstNs === undefined;
    const effects = this.#router.ended(flight.id, { outcome: "failed", mayRetry }, this.#nowNs);
    this.#carryOut(effects);
    if (effects.some((effect) => "request" in effect && effect.request === flight.id)) return;
    flight.failure = `${flight.workerName} died`;
    this.#answerClient(flight, "failed");
  }

  #tick(): void {
    // One that was announced before an earlier one came in between.
    if (this.#nowNs !== this.#nextTickNs) return;
    this.#bringUp();
    this.#carryOut(this.#router.tick(this.#nowNs));
    this.#nextTickNs = Number.POSITIVE_INFINITY;
    if (this.#open > 0) this.#tickAt(this.#nowNs + (this.#router.queued > 0 ? 1 : IDLE_TICKS) * this.#tickNs);
  }

  #tickAt(atNs: Nanoseconds): void {
    this.#nextTickNs = atNs;
    this.#push(atNs, EventClass.routing, TICK, 0);
  }

  /** The router asks a worker for events again, or for all it holds; question and answer travel like events do. */
  #ask(replica: number, range: readonly [number, number] | undefined): void {
    this.#questions.push({ worker: this.#byReplica[replica].index, range });
    const atNs = this.#nowNs + Math.max(2 * this.#delays.kvEvents.delayNs, 1);
    this.#push(atNs, EventClass.signal, ANSWER, this.#questions.length - 1);
  }

  #answer({ worker: index, range }: FeedQuestion): void {
    const worker = this.#workers[index];
    const nowNs = this.#nowNs;
    if (worker.isDead) return;
    if (range === undefined) {
      const snapshot = worker.engine.snapshot(nowNs);
      this.#advance(worker);
      return this.#carryOut(this.#router.restore(worker.replica, snapshot, nowNs));
    }
    this.#advance(worker);
    const events = worker.replay(range[0], range[1]);
    if (events === undefined) return this.#carryOut(this.#router.replayUnavailable(worker.replica, nowNs));
    for (const event of events) this.#apply(worker, event, nowNs);
  }

  #push(atNs: Nanoseconds, eventClass: EventClass, kind: number, payload: number, version = 0): void {
    this.#queue.push(atNs, eventClass, kind, payload, version);
  }

  #result(): FleetResult {
    // Until the last answer, or until waiting for answers was to stop.
    const stopNs = this.#drainEndNs();
    const endNs = this.#open > 0 && stopNs < Number.POSITIVE_INFINITY ? stopNs : this.#nowNs;
    return fleetResult({
      flights: this.#flights,
      workers: this.#workers,
      tracker: this.#tracker,
      meter: this.#meter,
      toClientNs: this.#delays.workerToClientNs,
      endNs,
      events: this.#events,
      kvEvents: this.#kvEvents,
    });
  }
}
