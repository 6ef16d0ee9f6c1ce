import { Admission } from "./admission/admission.ts";
import { noEligibleWorkerReason } from "./admission/shed-reason.ts";
import type { ShedReason } from "./admission/types.ts";
import { Accounts, type Accounting } from "./accounts.ts";
import type { Nanoseconds } from "./clock.ts";
import { commonPrefix } from "./hash.ts";
import type { Effect } from "./effects.ts";
import { EligibleReplicas } from "./eligible-replicas.ts";
import { WarmpathError } from "./errors.ts";
import { Fleet } from "./fleet.ts";
import type { FeedCounts, FeedState } from "./kv-index/event-feed.ts";
import { EventFeeds } from "./kv-index/event-feeds.ts";
import { KvIndex } from "./kv-index/kv-index.ts";
import type { FeedCapabilities, KvEvent, Match, ReplicaSnapshot } from "./kv-index/types.ts";
import { ActivePrefixes } from "./load/active-prefixes.ts";
import type { FirstToken, LoadDescription, ReportedLoad } from "./load/load-description.ts";
import { firstTokenSignal, growthSignal } from "./load/load-columns.ts";
import { LoadModel } from "./load/load-model.ts";
import { continueWith, mayTryAgain, openRequest, predictionHeld, type Ending } from "./open-request.ts";
import type { OpenRequest } from "./open-request.ts";
import { NO_REPLICA, PlacementView } from "./placement-view.ts";
import type { Placement, Policy } from "./policy/types.ts";
import { DecisionLog, NOBODY_CHOSEN, type ChoiceMade, type LoggedDecision } from "./record/decision-log.ts";
import type { FilteredReplicas } from "./record/decision-record.ts";
import type { ReplicaSpec, ReplicaState } from "./replica.ts";
import { checkRequest, type RoutedRequest } from "./routed-request.ts";
import { DEFAULT_KV_BLOCKS, resolveRouterOptions } from "./router-options.ts";
import type { ResolvedRouterOptions, RouterOptions, RouterRules } from "./router-options.ts";

/**
 * The hinge between what decides and what acts: owns index, load, policy and admission. It is told what happens, with the
 * time, and answers with effects for its driver to carry out. The simulated fleet and the gateway run this same object and
 * differ only in who calls it.
 */
export class Router {
  readonly fleet: Fleet;
  readonly load: LoadModel;
  readonly index: KvIndex;
  readonly log: DecisionLog;
  readonly #admission: Admission<OpenRequest>;
  readonly #accounts = new Accounts();
  readonly #view: PlacementView;
  readonly #open = new Map<string, OpenRequest>();
  readonly #feeds: EventFeeds;
  readonly #eligible = new EligibleReplicas();
  readonly #isBusy = (replica: number): boolean => this.#admission.isBusy(replica);
  #options: ResolvedRouterOptions;
  #policy: Policy;
  #activePrefixes: ActivePrefixes | undefined;
  #expectedOutputTokens: number;

  constructor(policy: Policy, options: RouterOptions) {
    const resolved = resolveRouterOptions(options);
    this.#options = resolved;
    this.fleet = new Fleet(resolved.maxReplicas);
    this.load = new LoadModel(resolved);
    this.index = new KvIndex(resolved);
    this.#feeds = new EventFeeds(this.index);
    this.log = new DecisionLog(resolved.records);
    this.#admission = new Admission(resolved, this.load);
    this.#view = new PlacementView(resolved, this.fleet.key, this.load);
    this.#expectedOutputTokens = resolved.expectedOutputTokens;
    this.#policy = policy;
    this.setPolicy(policy);
  }

  get policy(): Policy {
    return this.#policy;
  }

  /** Every request so far by how it ended; the accounts add up to what was offered. */
  get accounting(): Accounting {
    return this.#accounts.totals;
  }

  /** Requests waiting in the router. */
  get queued(): number {
    return this.#admission.queue.size;
  }

  get blockTokens(): number {
    return this.#options.blockTokens;
  }

  /** Whether a request has come and not ended: after `ended`, an open one was placed again or waits to be. */
  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /** Changes the policy at run time; requests in flight are not touched. */
  setPolicy(policy: Policy): void {
    this.#policy = policy;
    if (!policy.usesActivePrefix) {
      this.#activePrefixes = undefined;
      return;
    }
    this.#activePrefixes = new ActivePrefixes(this.fleet.maxReplicas, this.#options.maxBlocks);
    for (const { replica, request } of this.#open.values()) {
      if (replica !== NO_REPLICA) this.#activePrefixes.add(replica, request.sequence, request.blocks);
    }
  }

  /** Changes who is let in, how often a request is tried and how long it counts; what waits is looked at again. */
  setRules({ admission, maxAttempts, inactivityNs }: RouterRules, nowNs: Nanoseconds): Effect[] {
    this.#admission.setRules(admission);
    this.load.setInactivity(inactivityNs);
    this.#options = { ...this.#options, maxAttempts };
    return this.#drain(nowNs, []);
  }

  /** Adds a replica. Without a `feed` its cache is guessed from what is placed there, within its KV size. */
  addReplica(spec: ReplicaSpec, feed?: FeedCapabilities): number {
    const replica = this.fleet.add(spec);
    this.load.addReplica(replica, spec);
    this.#view.lastChosen[replica] = 0;
    this.#eligible.changed(this.fleet);
    if (feed === undefined) this.#guess(replica);
    else this.#feeds.add(replica, feed);
    return replica;
  }

  /** A replica's events cannot be had after all: its cache is guessed from now on. */
  withoutEvents(replica: number): void {
    this.#feeds.remove(replica);
    this.index.clearReplica(replica);
    this.#guess(replica);
  }

  /** Takes a replica out at once: its blocks are forgotten; its requests stay open until their ends are reported. */
  removeReplica(replica: number, nowNs: Nanoseconds): Effect[] {
    this.fleet.spec(replica);
    this.load.removeReplica(replica);
    this.index.clearReplica(replica);
    this.#activePrefixes?.clearReplica(replica);
    this.#feeds.remove(replica);
    this.#admission.setTrials(replica, undefined);
    this.fleet.remove(replica);
    this.#eligible.changed(this.fleet);
    this.#policy.observe?.({ kind: "replica-reset", replica });
    for (const open of this.#open.values()) {
      if (open.replica === replica) open.replica = NO_REPLICA;
      // Whoever gets the number next has not been tried.
      if (open.tried.includes(replica)) open.tried = open.tried.filter((tried) => tried !== replica);
    }
    return this.#shedWithoutWorkers([], nowNs);
  }

  setState(replica: number, state: ReplicaState, nowNs: Nanoseconds): Effect[] {
    this.fleet.setState(replica, state);
    this.#eligible.changed(this.fleet);
    return this.#shedWithoutWorkers(this.#drain(nowNs, []), nowNs);
  }

  /** Lets so many more requests onto a replica that must prove itself, whatever it had before; undefined is no limit. */
  setTrials(replica: number, requests: number | undefined): void {
    this.#admission.setTrials(replica, requests);
  }

  /** A request has come. Exactly one of place, hold and shed answers it. */
  offer(request: RoutedRequest, nowNs: Nanoseconds): Effect[] {
    if (this.#open.has(request.id)) {
      throw new WarmpathError("WP_DUPLICATE_REQUEST", `request ${request.id} is already open; ids must be unique`);
    }
    checkRequest(request);
    this.#accounts.offer();
    const open = openRequest(request, nowNs);
    this.#open.set(request.id, open);
    // Whoever waits goes first; what still waits after that cannot be placed now, so the newcomer overtakes nobody.
    const effects = this.#drain(nowNs, []);
    if (!this.#place(open, nowNs, effects)) this.#holdOrShed(open, nowNs, effects);
    return effects;
  }

  /** The request went out to its replica. */
  sent(id: string, nowNs: Nanoseconds): void {
    this.load.sent(nowNs, id);
  }

  /** The first token came back: its prefill is done. */
  firstToken(id: string, nowNs: Nanoseconds): Effect[] {
    const open = this.#open.get(id);
    // Noted even if the load model has lost the request: an answer that has begun is never repeated.
    if (open !== undefined) open.hasFirstToken = true;
    const first = this.load.firstToken(nowNs, id);
    if (open === undefined || first === undefined) return [];
    this.#sawFirstToken(open, first, 1, nowNs);
    return this.#drain(nowNs, []);
  }

  /** More output came; several tokens at once count like one by one. */
  grew(id: string, tokens: number, nowNs: Nanoseconds): Effect[] {
    const open = this.#open.get(id);
    if (open !== undefined && tokens > 0) open.hasFirstToken = true;
    const growth = this.load.grew(nowNs, id, tokens);
    if (growth === undefined || open === undefined) return [];
    const { firstToken } = growth;
    if (firstToken !== undefined) this.#sawFirstToken(open, firstToken, tokens, nowNs);
    this.#policy.observe?.(growthSignal(this.load.columns, growth, nowNs));
    return firstToken === undefined ? [] : this.#drain(nowNs, []);
  }

  /** The request has ended, or an attempt has: one that failed and can be repeated or continued is placed elsewhere. */
  ended(id: string, ending: Ending, nowNs: Nanoseconds): Effect[] {
    const open = this.#open.get(id);
    if (open === undefined) return [];
    if (ending.continuation !== undefined) checkRequest({ id, ...ending.continuation });
    this.#admission.queue.remove(id);
    this.#release(open, ending, nowNs);
    const effects: Effect[] = [];
    if (!this.#retry(open, ending, nowNs, effects)) {
      this.#open.delete(id);
      this.#accounts.end(ending.outcome);
    }
    return this.#drain(nowNs, effects);
  }

  /** An event of a replica's KV cache has arrived. */
  applyEvent(replica: number, event: KvEvent, nowNs: Nanoseconds): Effect[] {
    return this.#feeds.accept(replica, event, nowNs);
  }

  /** The events asked for cannot be sent again. */
  replayUnavailable(replica: number, nowNs: Nanoseconds): Effect[] {
    return this.#feeds.replayUnavailable(replica, nowNs);
  }

  /** The whole state of a replica's cache has arrived. */
  restore(replica: number, snapshot: ReplicaSnapshot, nowNs: Nanoseconds): Effect[] {
    return this.#feeds.restore(replica, snapshot, nowNs);
  }

  /** An engine reported its own load. */
  report(replica: number, reported: ReportedLoad, nowNs: Nanoseconds): void {
    this.load.report(replica, reported, nowNs);
    const isNews = reported.kvBlocks !== undefined && this.fleet.has(replica);
    if (!isNews || this.#feeds.has(replica) || this.fleet.spec(replica).kvBlocks !== undefined) return;
    const kvBlocks = this.load.columns.kvBlocks[replica];
    if (kvBlocks > 0) this.index.setApproximate(replica, kvBlocks);
  }

  /** Time has passed: expires what is over and places what has waited. Ten times a second is plenty. */
  tick(nowNs: Nanoseconds): Effect[] {
    this.index.expire(nowNs);
    // Their drivers have gone quiet; the requests stay open, but no longer count as load.
    for (const id of this.load.expire(nowNs)) this.#forgetLoad(id);
    return this.#drain(nowNs, this.#feeds.tick(nowNs));
  }

  /** How far the index can be trusted for a replica. */
  indexState(replica: number): FeedState | "approximate" {
    return this.#feeds.state(replica);
  }

  /** What has happened to a replica's events; undefined for one without. */
  feedCounts(replica: number): FeedCounts | undefined {
    return this.#feeds.counts(replica);
  }

  describeLoad(replica: number): LoadDescription {
    return this.load.describe(replica);
  }

  #guess(replica: number): void {
    this.index.setApproximate(replica, this.fleet.spec(replica).kvBlocks ?? DEFAULT_KV_BLOCKS);
  }

  /** Tries to place a request now; false if it has to wait or be refused. */
  #place(open: OpenRequest, nowNs: Nanoseconds, effects: Effect[]): boolean {
    const { request } = open;
    const filtered = this.#eligible.fill(this.#view, open.tried, this.#isBusy);
    if (this.#view.count === 0) return false;
    this.#describe(open, nowNs, this.index.match(request.sequence, request.blocks));
    const choice = this.#policy.choose(this.#view);
    if (choice.kind !== "place") return false;
    this.#commit(open, choice, filtered, nowNs, effects);
    return true;
  }

  /** Fills the view with a request, and with who holds what of it where anybody is asked. */
  #describe({ request, attempts }: OpenRequest, nowNs: Nanoseconds, match: Match | undefined): void {
    this.#view.describe(request, {
      nowNs,
      attempt: attempts + 1,
      expectedOutputTokens: Math.min(this.#expectedOutputTokens, request.maxOutputTokens ?? Infinity),
      mayHold: this.#admission.mayHold,
      match,
      tiersSeen: this.index.tiersSeen,
      activePrefix: match && this.#activePrefixes?.depths(request.sequence, request.blocks),
    });
  }

  /** Choosing and reserving are one step: nobody else can decide in between. */
  #commit(
    open: OpenRequest,
    choice: Placement,
    filtered: FilteredReplicas,
    nowNs: Nanoseconds,
    effects: Effect[],
  ): void {
    const view = this.#view;
    const { request } = open;
    const { replica } = choice;
    const predictedBlocks = view.cachedBlocks[replica];
    // Engines compute at least the last token, to have something to sample from.
    const most = Math.max(0, request.promptTokens - 1);
    const predictedCachedTokens = Math.min(predictedBlocks * view.blockTokens, most);
    const decision = this.log.nextDecision;
    const attempt = open.attempts + 1;
    const { inFlight, decoding } = this.load.columns;
    open.isPredictionOpen = inFlight[replica] > decoding[replica];
    const made: ChoiceMade = {
      chosen: this.#eligible.names[replica],
      runnerUp: choice.runnerUp < 0 ? null : this.#eligible.names[choice.runnerUp],
      margin: choice.margin,
      tied: choice.tied,
      indexState: this.indexState(replica),
      predictedCachedTokens,
    };
    this.#record(open, filtered, nowNs, made, null);
    this.load.reserve(nowNs, request.id, replica, request.promptTokens, predictedCachedTokens, request.sequence);
    // What is confirmed need not be expected.
    if (view.confirmedBlocks[replica] < request.blocks) {
      this.index.expect(replica, request.sequence, request.blocks, nowNs);
    }
    this.#activePrefixes?.add(replica, request.sequence, request.blocks);
    view.lastChosen[replica] = decision;
    this.#policy.observe?.({ kind: "placed", nowNs, replica });
    this.#admission.placed(replica, request.id);
    open.attempts = attempt;
    open.heldNs = undefined;
    open.replica = replica;
    open.decision = decision;
    open.decidedNs = nowNs;
    open.predictedBlocks = predictedBlocks;
    open.provenBlocks = 0;
    effects.push({ kind: "place", request: request.id, replica, decision, attempt, predictedCachedTokens });
  }

  #holdOrShed(open: OpenRequest, nowNs: Nanoseconds, effects: Effect[]): void {
    const { request } = open;
    const ready = this.#eligible.ready(open.tried);
    const verdict = this.#admission.judge(open, request, ready, this.fleet.size, nowNs);
    if (verdict.kind === "refused") {
      this.#shed(open, verdict.reason, effects, nowNs);
      return;
    }
    open.heldNs = nowNs;
    effects.push({ kind: "hold", request: request.id });
    const { displaced } = verdict;
    if (displaced !== undefined) this.#shed(displaced.item, displaced.reason, effects, nowNs);
  }

  /** Ends a request with a refusal, which is a decision like any other and has a record. */
  #shed(open: OpenRequest, reason: ShedReason, effects: Effect[], nowNs: Nanoseconds): void {
    const { request } = open;
    const filtered = this.#eligible.fill(this.#view, open.tried, this.#isBusy);
    this.#view.clearCandidates();
    this.#describe(open, nowNs, undefined);
    const decision = this.log.nextDecision;
    this.#record(open, filtered, nowNs, NOBODY_CHOSEN, reason);
    this.#open.delete(request.id);
    this.#accounts.end("shed");
    effects.push({ kind: "shed", request: request.id, decision, reason });
  }

  /** Writes a decision down, whichever way it went. One literal: copying its parts together took longer than deciding. */
  #record(
    open: OpenRequest,
    filtered: FilteredReplicas,
    nowNs: Nanoseconds,
    choice: ChoiceMade,
    refusal: ShedReason | null,
  ): void {
    const view = this.#view;
    const { request } = open;
    const decision: LoggedDecision = {
      decision: this.log.nextDecision,
      request: request.id,
      attempt: open.attempts + 1,
      continues: open.continues === 0 ? null : open.continues,
      decidedNs: nowNs,
      queueWaitNs: open.heldNs === undefined ? 0 : nowNs - open.heldNs,
      policy: this.#policy.name,
      parameters: this.#policy.parameters,
      promptTokens: request.promptTokens,
      promptBlocks: request.blocks,
      blockTokens: view.blockTokens,
      expectedOutputTokens: view.expectedOutputTokens,
      sessionKey: view.sessionKey,
      chance: view.chance,
      mayHold: view.mayHold,
      candidateCount: view.count,
      filtered,
      chosen: choice.chosen,
      runnerUp: choice.runnerUp,
      margin: choice.margin,
      tied: choice.tied,
      indexState: choice.indexState,
      predictedCachedTokens: choice.predictedCachedTokens,
      refusal,
    };
    this.log.add(
      decision,
      view,
      this.#eligible.names,
      this.log.detail === "full" ? this.#policy.learned?.(view) : undefined,
    );
  }

  /** Places what waits and still may, in order of priority and arrival, as long as somebody can take it. */
  #drain(nowNs: Nanoseconds, effects: Effect[]): Effect[] {
    if (this.queued === 0) return effects;
    const expired = this.#admission.expire(this.#eligible.ready([]), nowNs);
    for (const { item, reason } of expired) this.#shed(item, reason, effects, nowNs);
    this.#admission.queue.drain(({ item }) => {
      // The workers it could have waited for are gone: better the one that failed it than none.
      if (item.tried.length > 0 && this.#eligible.ready(item.tried).length === 0) item.tried = [];
      if (this.#place(item, nowNs, effects)) return "taken";
      // Without a candidate the rest cannot be placed either; a policy that holds one may still take another.
      return this.#view.count === 0 && item.tried.length === 0 ? "stop" : "kept";
    });
    return effects;
  }

  /** Without a worker to wait for, waiting is no better than the refusal a newcomer gets. */
  #shedWithoutWorkers(effects: Effect[], nowNs: Nanoseconds): Effect[] {
    if (this.queued === 0 || this.#eligible.ready([]).length > 0) return effects;
    const reason = noEligibleWorkerReason(this.fleet.size);
    this.#admission.queue.drain(({ item }) => {
      this.#shed(item, reason, effects, nowNs);
      return "taken";
    });
    return effects;
  }

  #sawFirstToken(open: OpenRequest, first: FirstToken, tokens: number, nowNs: Nanoseconds): void {
    this.log.firstToken(open.decision, first.sincePlacedNs);
    if (!this.#feeds.has(open.replica)) this.#computed(open.replica, open.request, nowNs);
    this.#policy.observe?.(firstTokenSignal(this.load.columns, first, tokens, nowNs));
  }

  /** Without events a first token is the proof that a prompt is cached now, whatever becomes of others that begin like it. */
  #computed(replica: number, { sequence, blocks }: RoutedRequest, nowNs: Nanoseconds): void {
    this.index.expect(replica, sequence, blocks, nowNs);
    for (const { id, sequence: other } of this.load.underWay.at(replica)) {
      const open = this.#open.get(id);
      if (open !== undefined) open.provenBlocks = Math.max(open.provenBlocks, commonPrefix(other, sequence, blocks));
    }
  }

  #release(open: OpenRequest, ending: Ending, nowNs: Nanoseconds): void {
    const reservation = this.load.ended(nowNs, open.request.id);
    const { replica, request } = open;
    if (replica === NO_REPLICA) return;
    this.#admission.left(replica, request.id);
    this.#activePrefixes?.remove(replica, request.sequence, request.blocks);
    if (ending.cachedTokens !== undefined) {
      this.log.observed(open.decision, ending.cachedTokens);
      const held = predictionHeld(open, ending.cachedTokens, this.#options.blockTokens);
      if (held !== undefined) this.index.correct(replica, held.predicted, held.observed);
    }
    if (ending.kept !== undefined && !this.#feeds.has(replica)) {
      this.index.expect(replica, ending.kept.sequence, ending.kept.blocks, nowNs);
    }
    if (!open.hasFirstToken && ending.outcome !== "completed") {
      // Nothing says that the prompt was computed there, so nobody shall be sent there for it.
      const from = Math.max(open.predictedBlocks, open.provenBlocks);
      this.index.retract(replica, request.sequence, from, request.blocks);
    }
    if (reservation === undefined) return;
    const { outputTokens } = reservation;
    if (ending.outcome === "completed")
      this.#expectedOutputTokens += 0.02 * (outputTokens - this.#expectedOutputTokens);
    this.#policy.observe?.({ kind: "ended", nowNs, replica, outputTokens });
  }

  #retry(open: OpenRequest, ending: Ending, nowNs: Nanoseconds, effects: Effect[]): boolean {
    if (!mayTryAgain(open, ending, this.#options.maxAttempts)) return false;
    if (open.replica !== NO_REPLICA) open.tried = [...open.tried, open.replica];
    open.replica = NO_REPLICA;
    if (ending.continuation !== undefined) continueWith(open, ending.continuation);
    if (this.#place(open, nowNs, effects)) return true;
    if (!this.#admission.mayHold || this.#eligible.ready(open.tried).length === 0) return false;
    this.#holdOrShed(open, nowNs, effects);
    return true;
  }

  #forgetLoad(id: string): void {
    const open = this.#open.get(id);
    if (open === undefined || open.replica === NO_REPLICA) return;
    this.#activePrefixes?.remove(open.replica, open.request.sequence, open.request.blocks);
    this.#admission.left(open.replica, id);
    open.tried = [...open.tried, open.replica];
    open.replica = NO_REPLICA;
  }
}
