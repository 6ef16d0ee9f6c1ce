import type { Nanoseconds } from "../../core/clock.ts";
import { WarmpathError } from "../../core/errors.ts";
import type { ReplicaSnapshot } from "../../core/kv-index/types.ts";
import { Rng } from "../../core/rng.ts";
import type { StepShape } from "../timing/step-timer.ts";
import { emptyList } from "./empty-list.ts";
import type { EngineEffects, EngineOptions } from "./engine-options.ts";
import { type EngineProgress, type EngineRequest, requireTokens, Sequence } from "./engine-request.ts";
import { type EngineMark, type EngineStats, EngineTotals } from "./engine-stats.ts";
import { KvEventLog } from "./kv-event-log.ts";
import { requireRunnable } from "./profile.ts";
import { ProgressGuard } from "./progress-guard.ts";
import { Scheduler } from "./scheduler.ts";
import { SpeculativeBatch } from "./speculative-batch.ts";
import { StepLog } from "./step-log.ts";
import { Stretch } from "./stretch.ts";

/**
 * One replica's engine: continuous batching over a paged KV cache. Pure: a driver tells it the time. `beginStep` fixes what
 * happens until the time it returns; `endStep` makes it visible. A run of decode steps is one such stretch: it is brought
 * up to any moment by `advanceTo` and ends early when a request comes, after the step that is under way.
 */
export class Engine {
  readonly effects: EngineEffects = { firstTokens: [], growth: [], finished: [], kvEvents: [] };
  readonly #options: EngineOptions;
  readonly #scheduler: Scheduler;
  readonly #speculative: SpeculativeBatch | undefined;
  readonly #events: KvEventLog;
  readonly #log: StepLog;
  readonly #stretch = new Stretch();
  readonly #totals = new EngineTotals();
  readonly #byKey = new Map<number, Sequence>();
  readonly #shape: StepShape = {
    prefillTokens: 0,
    prefillPairs: 0,
    decodeSequences: 0,
    decodeTokens: 0,
    contextTokens: 0,
    sampledRows: 0,
    prefillSequences: 0,
  };
  readonly #isMixed: boolean;
  /** Decode step whose blocks are taken. */
  #blocksTakenFor = -1;
  #lastStepNs = -1;
  #nextChangeNs = Number.POSITIVE_INFINITY;
  #cancelled = 0;
  #isStopped = false;
  readonly #guard: ProgressGuard;

  constructor(options: EngineOptions) {
    const { profile, limits, speculation } = options;
    requireRunnable(profile, limits, speculation?.drafts ?? 0);
    this.#options = options;
    this.#isMixed = profile.prefillSteps === "mixed";
    this.#log = new StepLog(options.tokenTimes, this.#isMixed);
    this.#events = new KvEventLog(options.incarnation, options.kvEvents, this.effects.kvEvents);
    this.#speculative =
      speculation === undefined ? undefined : new SpeculativeBatch(speculation, new Rng(speculation.seed));
    this.#scheduler = new Scheduler(profile, limits, this.#speculative, this.#events, (sequence) => {
      this.#totals.preemptions += 1;
      this.#log.leave(sequence);
    });
    this.#guard = new ProgressGuard(limits, options.mostFruitlessSteps);
  }

  /** Requests in the batch, those whose prompt is being computed included. */
  get running(): number {
    return this.#scheduler.running.length;
  }

  get queued(): number {
    return this.#scheduler.waiting.size;
  }

  get heldBlocks(): number {
    return this.#scheduler.cache.heldBlocks;
  }

  get isStepping(): boolean {
    return this.#stretch.isUnderWay;
  }

  get hasWork(): boolean {
    return this.#scheduler.hasWork;
  }

  /** When `advanceTo` has something to do next; Infinity while it has not. */
  get nextChangeNs(): Nanoseconds {
    return this.#nextChangeNs;
  }

  get stats(): EngineStats {
    const { cache } = this.#scheduler;
    return this.#totals.snapshot(cache.poolBlocks, cache.evictedBlocks);
  }

  /** Takes a request in; returns why it never can run here, or undefined. The stretch under way may end earlier now. */
  submit(request: EngineRequest, nowNs: Nanoseconds): string | undefined {
    if (this.#byKey.has(request.key)) {
      throw new WarmpathError("WP_DUPLICATE_REQUEST", `request ${request.key} is already in the engine`);
    }
    requireTokens(request);
    const refusal = this.#scheduler.refusal(request);
    if (refusal !== undefined) {
      this.#totals.rejected += 1;
      return refusal;
    }
    const sequence = new Sequence(request, nowNs);
    this.#byKey.set(request.key, sequence);
    const { waiting } = this.#scheduler;
    const wasEmpty = waiting.size === 0;
    waiting.push(sequence);
    if (waiting.size > this.#totals.maxQueued) this.#totals.maxQueued = waiting.size;
    // Whoever stands behind another, or has no slot, cannot be admitted before something ends.
    if (wasEmpty && this.#scheduler.hasFreeSlot) this.#cut(nowNs);
    return undefined;
  }

  /** Takes a request out: at once if it waits, else at the end of the step under way. False if it is not here. */
  cancel(key: number, nowNs: Nanoseconds): boolean {
    const sequence = this.#byKey.get(key);
    if (sequence === undefined || sequence.isCancelled) return false;
    sequence.isCancelled = true;
    this.#cancelled += 1;
    if (this.#scheduler.withdraw(sequence)) this.#end(sequence, nowNs);
    else if (!this.#stretch.isUnderWay) this.#dropCancelled(nowNs);
    // Who stood behind it may have room now.
    this.#cut(nowNs);
    return true;
  }

  /** Begins the next step, or run of steps, and returns when it ends; undefined if there is nothing to do. */
  beginStep(nowNs: Nanoseconds): Nanoseconds | undefined {
    const scheduler = this.#scheduler;
    const stretch = this.#stretch;
    if (stretch.isUnderWay) throw new WarmpathError("WP_INVALID_STATE", "the engine is in a step already");
    if (!scheduler.hasWork) return undefined;
    const { clock } = stretch;
    if (nowNs < clock.nowNs)
      throw new WarmpathError("WP_INVALID_STATE", `a step cannot begin at ${nowNs}, before ${clock.nowNs}`);
    const { profile } = this.#options;
    const isBackToBack = nowNs === clock.nowNs && this.#lastStepNs >= 0;
    if (nowNs > clock.nowNs) clock.wakeAt(nowNs);
    // Scheduled while the step before was under way, it knows only who had come when that one began.
    const isAhead = profile.asyncSchedulingDepth === 1 && isBackToBack && scheduler.isBusy;
    scheduler.plan(isAhead ? this.#lastStepNs : nowNs);
    this.#blocksTakenFor = scheduler.batch.step;
    if (profile.eventFlush === "async") this.#events.flush(nowNs);
    stretch.done = 0;
    stretch.isRun = scheduler.chunks.length === 0;
    if (stretch.isRun) stretch.steps = this.#planRun();
    else stretch.planStep(this.#shapeStep());
    if (stretch.steps === 0) {
      const first = scheduler.waiting.first?.request.key;
      throw new WarmpathError("WP_INVALID_STATE", `the engine makes no progress: request ${first} cannot be admitted`);
    }
    stretch.isUnderWay = true;
    this.#findNextChange();
    return stretch.endNs;
  }

  /** When the stretch under way ends. */
  get endNs(): Nanoseconds {
    return this.#stretch.endNs;
  }

  /** Brings a run of decode steps up to `nowNs`: the steps that are over by then take effect, except the last one. */
  advanceTo(nowNs: Nanoseconds): void {
    if (nowNs < this.#nextChangeNs) return;
    const over = this.#stretch.stepsOverBy(nowNs);
    if (over > this.#stretch.done) this.#runDecodes(over);
    if (this.#options.profile.eventFlush === "async") this.#takeBlocksInFlight(nowNs);
    this.#findNextChange();
  }

  /** Stops for good: every step that is over by now is counted and in the log, and none is run any more. */
  settleAt(nowNs: Nanoseconds): void {
    if (!this.#settleSteps(nowNs)) return;
    this.#takeBlocks();
    this.#log.stop(this.#stretch);
    this.#isStopped = true;
  }

  /** What has been done by now, the step under way as far as it is: of two such marks, what was done in between. */
  markAt(nowNs: Nanoseconds): EngineMark {
    this.advanceTo(nowNs);
    this.#takeBlocksInFlight(nowNs);
    const { isUnderWay, done } = this.#stretch;
    const ns = isUnderWay ? nowNs - this.#stretch.timeAfter(done) : 0;
    const { cache } = this.#scheduler;
    return this.#totals.mark(ns, cache.heldBlocks, cache.evictedBlocks);
  }

  /** Begins to look for the maxima of marks anew. */
  restartMaxima(): void {
    this.#totals.restartMaxima(this.queued);
  }

  /** The end of this engine: what it was doing and its cache are lost. What it has done until now stays counted. */
  die(nowNs: Nanoseconds): void {
    if (this.#settleSteps(nowNs)) this.#takeBlocksInFlight(nowNs);
    this.#stretch.isUnderWay = false;
    this.#nextChangeNs = Number.POSITIVE_INFINITY;
  }

  /** Lets the steps of a run that are over take effect; false where no run is under way. */
  #settleSteps(nowNs: Nanoseconds): boolean {
    const { isUnderWay, isRun, done, steps } = this.#stretch;
    if (!isUnderWay || !isRun || steps === 1) return false;
    const over = this.#stretch.stepsOverBy(nowNs);
    if (over > done) this.#runDecodes(over);
    return true;
  }

  /** How far a request is by now; undefined if it is not here. */
  progressOf(key: number, nowNs: Nanoseconds): EngineProgress | undefined {
    const sequence = this.#byKey.get(key);
    if (sequence === undefined) return undefined;
    const stretch = this.#stretch;
    const isRunning = stretch.isUnderWay && stretch.isRun;
    const more = isRunning ? Math.max(0, stretch.stepsOverBy(nowNs) - stretch.done) : 0;
    const lastStepNs = isRunning ? stretch.timeAfter(stretch.done + more) : stretch.clock.nowNs;
    const isInBatch = sequence.state === "decoding" && this.#speculative === undefined;
    const outputTokens = isInBatch ? this.#scheduler.batch.generatedOf(sequence) + more : sequence.generated;
    const unlogged = isRunning && !this.#isStopped ? stretch.done + more : 0;
    const tokenRuns = this.#log.timesSoFar(sequence, stretch, unlogged);
    return { outputTokens, cachedTokens: Math.max(0, sequence.cachedTokens), lastStepNs, tokenRuns };
  }

  /** Ends the stretch under way; what came of it is in `effects`. */
  endStep(nowNs: Nanoseconds): EngineEffects {
    const stretch = this.#stretch;
    if (!stretch.isUnderWay || nowNs !== stretch.endNs) {
      const state = stretch.isUnderWay ? `the step ends at ${stretch.endNs}` : "there is no step";
      throw new WarmpathError("WP_INVALID_STATE", `endStep at ${nowNs}, but ${state}`);
    }
    const scheduler = this.#scheduler;
    const decodes = stretch.isRun || this.#isMixed ? scheduler.decoding : 0;
    if (decodes > 0 && this.#speculative === undefined) this.#runDecodes(stretch.steps);
    else {
      this.#spend(1, nowNs - stretch.clock.nowNs);
      if (decodes > 0) this.#speculate(nowNs);
    }
    this.#log.add(stretch, decodes, scheduler.chunks.length);
    this.#lastStepNs = stretch.timeAfter(stretch.steps - 1);
    stretch.end();
    this.#nextChangeNs = Number.POSITIVE_INFINITY;
    this.#totals.runs += 1;
    scheduler.releaseLingering();
    if (decodes > 0) this.#finishDecodes(nowNs);
    for (const sequence of scheduler.chunks) this.#endChunk(sequence, nowNs);
    emptyList(scheduler.chunks);
    this.#dropCancelled(nowNs);
    this.#events.flush(nowNs);
    // A request that its client gave up is over too: a crowd of impatient clients is no livelock.
    this.#guard.watch(this.#totals.outputTokens + this.#totals.finished);
    return this.effects;
  }

  /** All that can be found in the cache, as of the last event made. */
  snapshot(nowNs: Nanoseconds): ReplicaSnapshot {
    this.advanceTo(nowNs);
    this.#takeBlocksInFlight(nowNs);
    const { incarnation, lastEventId } = this.#events;
    return { incarnation, lastEventId, runs: this.#scheduler.snapshotRuns() };
  }

  /** Forgets everything cached that no request holds; what is held is forgotten by nobody. */
  forgetUnheld(nowNs: Nanoseconds): void {
    this.#scheduler.cache.forgetUnheld();
    this.#events.flush(nowNs);
  }

  /** Plans decode steps up to whatever comes first: an end, missing blocks, a change of the formula; 0 if none can run. */
  #planRun(): number {
    const scheduler = this.#scheduler;
    const { batch } = scheduler;
    if (scheduler.decoding + scheduler.lingering.length === 0) return 0;
    const isSteady = this.#speculative === undefined && scheduler.lingering.length === 0;
    if (!isSteady || !this.#options.coalesce) {
      this.#stretch.planStep(this.#shapeStep());
      return 1;
    }
    this.#options.timer.decodeAffine(batch.size, batch.contextTokens, this.#stretch.run);
    // Somebody who came too late for this step will be admitted at the next.
    if (scheduler.mayAdmitNext) return 1;
    const wanted = Math.min(batch.nextFinish - batch.step, this.#stretch.run.validSteps);
    return batch.stepsWithin(scheduler.cache.available, wanted);
  }

  #shapeStep(): number {
    const shape = this.#scheduler.shapeStep(this.#stretch.isRun || this.#isMixed, this.#shape);
    this.#totals.prefillTokens += shape.prefillTokens;
    return (this.#options.speculation?.timer ?? this.#options.timer).stepPs(shape);
  }

  #cut(nowNs: Nanoseconds): void {
    this.#stretch.cut(nowNs);
    this.#findNextChange();
  }

  /** Runs decode steps until `until` of the stretch are over, from one block boundary to the next. */
  #runDecodes(until: number): void {
    const { batch } = this.#scheduler;
    const stretch = this.#stretch;
    const events = this.#events;
    let fromNs = stretch.timeAfter(stretch.done);
    while (stretch.done < until) {
      this.#takeBlocks();
      const limit = until - stretch.done;
      const boundary = batch.nextBoundary(0, limit);
      const steps = Math.min(boundary, limit);
      if (steps > 1) events.flush(stretch.timeAfter(stretch.done + 1));
      const atNs = stretch.timeAfter(stretch.done + steps);
      this.#spend(steps, atNs - fromNs);
      batch.advance(steps);
      stretch.done += steps;
      this.#totals.outputTokens += steps * batch.size;
      if (boundary === steps) this.#fillBlocks(atNs);
      if (this.#options.growth === "step") this.#reportAll(atNs);
      // Of the last step more may come, and its events leave together.
      if (stretch.done < stretch.steps) events.flush(atNs);
      fromNs = atNs;
    }
  }

  /** Takes the blocks of the coming step of a run, if they are not taken yet. */
  #takeBlocks(): void {
    const scheduler = this.#scheduler;
    if (this.#blocksTakenFor === scheduler.batch.step) return;
    this.#blocksTakenFor = scheduler.batch.step;
    scheduler.takeNextBlocks();
    const isAsync = this.#options.profile.eventFlush === "async";
    if (isAsync) this.#events.flush(this.#stretch.timeAfter(this.#stretch.done));
  }

  /** Does for a run what the beginning of its present step would have done; a step begins after all else of its moment. */
  #takeBlocksInFlight(nowNs: Nanoseconds): void {
    const { isUnderWay, isRun, done } = this.#stretch;
    if (isUnderWay && isRun && this.#speculative === undefined && nowNs > this.#stretch.timeAfter(done))
      this.#takeBlocks();
  }

  /** Those who need a block next have just filled one: it becomes findable, and the router hears of their tokens. */
  #fillBlocks(atNs: Nanoseconds): void {
    const { batch } = this.#scheduler;
    const isVisible = this.#options.profile.outputVisibleAt === "filled";
    for (const sequence of batch.needingBlock(0)) {
      if (isVisible) this.#scheduler.publish(sequence, batch.computedOf(sequence));
      if (this.#options.growth === "block") this.#report(sequence, batch.generatedOf(sequence), atNs);
    }
  }

  #reportAll(atNs: Nanoseconds): void {
    const { running, batch } = this.#scheduler;
    for (const sequence of running) {
      if (sequence.state === "decoding") this.#report(sequence, batch.generatedOf(sequence), atNs);
    }
  }

  #report(sequence: Sequence, generated: number, atNs: Nanoseconds): void {
    const tokens = generated - sequence.reported;
    if (tokens <= 0) return;
    sequence.reported = generated;
    this.effects.growth.push({ key: sequence.request.key, atNs, tokens });
  }

  #speculate(atNs: Nanoseconds): void {
    const speculative = this.#speculative;
    if (speculative === undefined) return;
    for (const sequence of speculative.sequences) {
      const before = sequence.generated;
      this.#totals.proposedDrafts += speculative.drafts;
      this.#totals.acceptedDrafts += speculative.gain(sequence);
      this.#totals.outputTokens += sequence.generated - before;
      if (this.#options.profile.outputVisibleAt === "filled") this.#scheduler.publish(sequence, sequence.computed);
      if (this.#options.growth !== "none") this.#report(sequence, sequence.generated, atNs);
    }
  }

  #finishDecodes(nowNs: Nanoseconds): void {
    const { batch, running } = this.#scheduler;
    const isExplicit = this.#speculative !== undefined;
    if (!isExplicit && batch.nextFinish > batch.step) return;
    // In the order of the running list, which ending changes.
    for (let i = 0; i < running.length;) {
      const sequence = running[i];
      const { state, finishStep, generated, request } = sequence;
      const isLast = isExplicit ? generated === request.outputTokens : finishStep === batch.step;
      if (state === "decoding" && isLast) this.#finish(sequence, nowNs);
      else i++;
    }
  }

  #endChunk(sequence: Sequence, nowNs: Nanoseconds): void {
    const { cacheVisibleAt } = this.#options.profile;
    const scheduler = this.#scheduler;
    sequence.computed += sequence.chunk;
    sequence.chunk = 0;
    const isWhole = sequence.computed === sequence.target;
    if (cacheVisibleAt !== "contextEnd" || isWhole) scheduler.publish(sequence, sequence.computed);
    if (!isWhole) return;
    scheduler.prefilling.splice(scheduler.prefilling.indexOf(sequence), 1);
    if (sequence.generated === 0) {
      this.effects.firstTokens.push({ key: sequence.request.key, atNs: nowNs });
      this.#totals.promptTokens += sequence.request.promptTokens;
      this.#totals.cachedTokens += sequence.cachedTokens;
    }
    sequence.generated += 1;
    this.#totals.outputTokens += 1;
    this.#log.enter(sequence);
    if (sequence.generated < sequence.request.outputTokens) scheduler.joinBatch(sequence);
    else this.#finish(sequence, nowNs);
  }

  #finish(sequence: Sequence, nowNs: Nanoseconds): void {
    const scheduler = this.#scheduler;
    if (sequence.state === "decoding") scheduler.leaveBatch(sequence);
    scheduler.publish(sequence, sequence.computed);
    scheduler.dropFromRunning(sequence);
    if (this.#options.profile.asyncSchedulingDepth === 1) scheduler.lingering.push(sequence);
    else scheduler.release(sequence);
    this.#end(sequence, nowNs);
  }

  /** Settles what is to be told of a request that is over. */
  #end(sequence: Sequence, nowNs: Nanoseconds): void {
    this.#log.leave(sequence);
    sequence.state = "ended";
    this.#byKey.delete(sequence.request.key);
    this.#speculative?.forget(sequence);
    this.#totals.finished += 1;
    this.effects.finished.push({
      key: sequence.request.key,
      atNs: nowNs,
      admittedNs: sequence.admittedNs,
      outputTokens: sequence.generated,
      cachedTokens: Math.max(0, sequence.cachedTokens),
      unreportedTokens: sequence.generated - sequence.reported,
      preemptions: sequence.preemptions,
      tokenRuns: this.#log.timesOf(sequence),
      isCancelled: sequence.isCancelled,
    });
  }

  #dropCancelled(nowNs: Nanoseconds): void {
    if (this.#cancelled === 0) return;
    const scheduler = this.#scheduler;
    this.#cancelled = 0;
    for (const sequence of scheduler.running.filter((s) => s.isCancelled)) {
      if (sequence.state === "decoding") scheduler.leaveBatch(sequence);
      else scheduler.abandonPrompt(sequence);
      scheduler.dropFromRunning(sequence);
      scheduler.release(sequence);
      this.#end(sequence, nowNs);
    }
  }

  /** Accounts for steps of the stretch in which nothing changed, and for the time they took. */
  #spend(steps: number, ns: number): void {
    const { running, lingering, cache } = this.#scheduler;
    this.#totals.steps += steps;
    this.#totals.spent(ns, running.length + lingering.length, cache.heldBlocks);
  }

  #findNextChange(): void {
    const stretch = this.#stretch;
    const left = stretch.steps - 1 - stretch.done;
    if (!stretch.isRun || left <= 0) {
      this.#nextChangeNs = Number.POSITIVE_INFINITY;
      return;
    }
    const { batch } = this.#scheduler;
    // Blocks taken for the coming step may cost others theirs, and that is known when it ends.
    const isTaking = this.#blocksTakenFor !== batch.step && batch.needingBlock(0).length > 0;
    if (isTaking && this.#options.profile.eventFlush === "async") {
      this.#nextChangeNs = stretch.timeAfter(stretch.done) + 1;
      return;
    }
    const boundary = isTaking || this.#events.hasPending ? 1 : batch.nextBoundary(0, left);
    this.#nextChangeNs = boundary > left ? Number.POSITIVE_INFINITY : stretch.timeAfter(stretch.done + boundary);
  }
}
