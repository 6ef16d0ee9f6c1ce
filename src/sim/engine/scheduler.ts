import type { Nanoseconds } from "../../core/clock.ts";
import type { SnapshotRun } from "../../core/kv-index/types.ts";
import type { StepShape } from "../timing/step-timer.ts";
import { BatchWait } from "./batch-wait.ts";
import type { CacheListener } from "./block-cache.ts";
import { DecodeBatch } from "./decode-batch.ts";
import { emptyList } from "./empty-list.ts";
import type { EngineRequest, Sequence } from "./engine-request.ts";
import type { EngineLimits, EngineProfile } from "./profile.ts";
import { RunCache, type RunHolding } from "./run-cache.ts";
import type { SpeculativeBatch } from "./speculative-batch.ts";
import { WaitingQueue } from "./waiting-queue.ts";

/**
 * Decides what a step consists of: which prompts get how many tokens, who is admitted, who has to give way. It knows
 * blocks and tokens but not how long anything takes.
 */
export class Scheduler {
  readonly profile: EngineProfile;
  readonly limits: EngineLimits;
  readonly cache: RunCache;
  readonly waiting: WaitingQueue = new WaitingQueue();
  /** Admitted requests in the order of admission. */
  readonly running: Sequence[] = [];
  /** Of those, the ones whose prompt is not computed yet. */
  readonly prefilling: Sequence[] = [];
  /** Finished requests that occupy one step more. */
  readonly lingering: Sequence[] = [];
  /** What the planned step computes of prompts. */
  readonly chunks: Sequence[] = [];
  readonly batch: DecodeBatch;
  readonly speculative: SpeculativeBatch | undefined;
  /** Called with a request that lost its place, once its blocks are gone. */
  readonly #onPreempted: (sequence: Sequence) => void;
  readonly #batchWait: BatchWait;
  #admitted = 0;
  /** True while the first waiting request has no room; only a release can change that. */
  #isStalled = false;
  #hasPreempted = false;
  /** Blocks that running requests were promised in all, and have. */
  #promisedBlocks = 0;
  #ownedBlocks = 0;

  constructor(
    profile: EngineProfile,
    limits: EngineLimits,
    speculative: SpeculativeBatch | undefined,
    listener: CacheListener,
    onPreempted: (sequence: Sequence) => void,
  ) {
    this.profile = profile;
    this.limits = limits;
    this.speculative = speculative;
    const { duplicates } = profile;
    this.cache = new RunCache({ poolBlocks: limits.poolBlocks - profile.reservedBlocks, duplicates }, listener);
    this.#batchWait = new BatchWait(profile, limits);
    this.batch = new DecodeBatch(limits.blockTokens);
    this.#onPreempted = onPreempted;
  }

  get decoding(): number {
    return this.speculative === undefined ? this.batch.size : this.speculative.size;
  }

  get contextTokens(): number {
    return this.speculative === undefined ? this.batch.contextTokens : this.speculative.contextTokens;
  }

  get hasWork(): boolean {
    return this.isBusy || this.waiting.size > 0;
  }

  /** Whether the coming step has something to do even if nobody is admitted. */
  get isBusy(): boolean {
    return this.running.length > 0 || this.lingering.length > 0;
  }

  get hasFreeSlot(): boolean {
    return this.running.length + this.lingering.length < this.limits.maxSequences;
  }

  /** Whether the first waiting request could be admitted at the next step without anything ending before. */
  get mayAdmitNext(): boolean {
    return this.waiting.size > 0 && !this.#isStalled && this.hasFreeSlot;
  }

  /** Why a request can never run here, or undefined. */
  refusal(request: EngineRequest): string | undefined {
    const blocks = this.#blocksToCompletion(request);
    if (blocks > this.cache.poolBlocks) {
      const need = `needs ${blocks} KV blocks to completion`;
      return `${need}, the pool has ${this.cache.poolBlocks}`;
    }
    if (!this.limits.chunkedPrefill && request.promptTokens > this.limits.maxTokensPerStep) {
      const prompt = `the prompt has ${request.promptTokens} tokens`;
      return `${prompt}, a step without chunked prefill takes ${this.limits.maxTokensPerStep}`;
    }
    return undefined;
  }

  /** Takes a request out of the queue; false if it is not in it. */
  withdraw(sequence: Sequence): boolean {
    if (!this.waiting.remove(sequence)) return false;
    this.#isStalled = false;
    return true;
  }

  /** Plans the coming step. Requests that came after `cutoffNs` are not seen yet. */
  plan(cutoffNs: Nanoseconds): void {
    const { prefillSteps } = this.profile;
    const drafts = this.speculative?.drafts ?? 0;
    emptyList(this.chunks);
    this.#hasPreempted = false;
    let budget = this.limits.maxTokensPerStep;
    if (prefillSteps === "mixed") {
      this.#takeDecodeBlocks();
      budget -= (this.decoding + this.lingering.length) * (drafts + 1);
    }
    budget = this.#continuePrompts(budget);
    // Whoever has just given way must not take its place again at once.
    if (!this.#hasPreempted) this.#admit(budget, cutoffNs);
    if (prefillSteps === "alone" && this.chunks.length === 0) this.#takeDecodeBlocks();
  }

  /** The planned step as its duration depends on it, with or without decodes; fills and returns `into`. */
  shapeStep(isDecoding: boolean, into: StepShape): StepShape {
    const { chunks, lingering } = this;
    into.prefillTokens = 0;
    into.prefillPairs = 0;
    into.prefillSequences = chunks.length;
    into.decodeSequences = isDecoding ? this.decoding + lingering.length : 0;
    into.decodeTokens = into.decodeSequences;
    into.contextTokens = isDecoding ? this.contextTokens : 0;
    if (isDecoding) for (let i = 0; i < lingering.length; i++) into.contextTokens += lingering[i].computed + 1;
    into.sampledRows = into.decodeSequences;
    for (let i = 0; i < chunks.length; i++) {
      const { chunk, computed, target } = chunks[i];
      into.prefillTokens += chunk;
      into.prefillPairs += chunk * (computed + chunk / 2);
      if (computed + chunk === target) into.sampledRows += 1;
    }
    return into;
  }

  /** Gives the requests that need a block in the coming step theirs, without looking whether there is one. */
  takeNextBlocks(): void {
    const needing = this.batch.needingBlock(0);
    for (let i = 0; i < needing.length; i++) this.#allocate(needing[i], 1);
  }

  publish(sequence: Sequence, computedTokens: number): void {
    const { holding, request } = sequence;
    if (holding === undefined || !this.limits.prefixReuse) return;
    const blocks = Math.min(Math.floor(computedTokens / this.limits.blockTokens), request.sequence.length >>> 1);
    if (blocks > holding.published) this.cache.publish(holding, request.sequence, blocks);
  }

  /** Takes a request out of the running list; its blocks stay until they are released. */
  dropFromRunning(sequence: Sequence): void {
    this.running.splice(this.running.indexOf(sequence), 1);
    this.#isStalled = false;
  }

  /** Those who occupied one step more than they computed give their blocks back. */
  releaseLingering(): void {
    const { lingering } = this;
    for (let i = 0; i < lingering.length; i++) this.release(lingering[i]);
    emptyList(lingering);
  }

  release(sequence: Sequence): void {
    const { holding } = sequence;
    if (holding === undefined) return;
    this.#promisedBlocks -= this.#blocksToCompletion(sequence.request);
    this.#ownedBlocks -= blocksOf(holding);
    this.cache.release(holding);
    sequence.holding = undefined;
    this.#isStalled = false;
  }

  /** Every request that decodes gets what its next tokens need, or somebody has to give way. */
  #takeDecodeBlocks(): void {
    const { speculative } = this;
    // Copied where somebody may have to give way, which changes both lists.
    const needing = speculative === undefined ? this.batch.needingBlock(0) : speculative.sequences;
    const most = needing.length * (speculative === undefined ? 1 : speculative.drafts + 2);
    const safe = this.cache.available < most ? [...needing] : needing;
    for (let i = 0; i < safe.length; i++) {
      const sequence = safe[i];
      if (sequence.state !== "decoding") continue;
      let blocks = 1;
      if (speculative !== undefined) {
        const held = sequence.holding === undefined ? 0 : blocksOf(sequence.holding);
        blocks = Math.ceil(speculative.reachOf(sequence) / this.limits.blockTokens) - held;
      }
      if (blocks <= 0) continue;
      this.#makeRoom(sequence, blocks);
      // It may have been the one to give way.
      if (sequence.holding !== undefined) this.#allocate(sequence, blocks);
    }
  }

  /** Preempts until there is room, in the end the request itself. */
  #makeRoom(sequence: Sequence, blocks: number): void {
    while (this.cache.available < blocks && sequence.holding !== undefined) this.#preempt(this.#victim());
  }

  #victim(): Sequence {
    if (this.profile.preempt !== "retract") return this.running[this.running.length - 1];
    let victim = this.running[0];
    let least = Number.POSITIVE_INFINITY;
    for (const sequence of this.running) {
      const isImplicit = sequence.state === "decoding" && this.speculative === undefined;
      const generated = isImplicit ? this.batch.generatedOf(sequence) : sequence.generated;
      if (generated > least) continue;
      if (generated === least && sequence.request.promptTokens < victim.request.promptTokens) continue;
      least = generated;
      victim = sequence;
    }
    return victim;
  }

  #preempt(sequence: Sequence): void {
    this.#hasPreempted = true;
    if (sequence.state === "decoding") this.leaveBatch(sequence);
    else this.#dropPrompt(sequence);
    this.dropFromRunning(sequence);
    this.release(sequence);
    sequence.state = "waiting";
    sequence.computed = 0;
    sequence.queuedNs = 0;
    sequence.preemptions += 1;
    if (this.profile.preempt === "retract") this.waiting.push(sequence);
    else this.waiting.pushFront(sequence);
    this.#onPreempted(sequence);
  }

  /** All that can be found in the cache. */
  snapshotRuns(): SnapshotRun[] {
    return this.cache.contents().map(([sequence, from, to]) => ({
      tier: "device",
      sequence: sequence.subarray(2 * from, 2 * to),
      engine: null,
    }));
  }

  leaveBatch(sequence: Sequence): void {
    if (this.speculative === undefined) this.batch.leave(sequence);
    else this.speculative.leave(sequence);
  }

  joinBatch(sequence: Sequence): void {
    if (this.speculative === undefined) this.batch.join(sequence);
    else this.speculative.join(sequence);
  }

  #dropPrompt(sequence: Sequence): void {
    this.prefilling.splice(this.prefilling.indexOf(sequence), 1);
    const at = this.chunks.indexOf(sequence);
    if (at >= 0) this.chunks.splice(at, 1);
    sequence.chunk = 0;
  }

  /** Takes a cancelled request out, whose prompt was being computed. */
  abandonPrompt(sequence: Sequence): void {
    this.#dropPrompt(sequence);
  }

  #continuePrompts(budget: number): number {
    if (this.prefilling.length === 0) return budget;
    let left = budget;
    // Copied, because giving way changes the list.
    const prefilling = this.prefilling.slice();
    for (let i = 0; i < prefilling.length; i++) {
      const sequence = prefilling[i];
      if (left <= 0) break;
      if (sequence.state !== "prefilling") continue;
      const chunk = this.#chunkOf(sequence.computed, sequence.target, left);
      const held = sequence.holding === undefined ? 0 : blocksOf(sequence.holding);
      const blocks = Math.ceil((sequence.computed + chunk) / this.limits.blockTokens) - held;
      if (chunk === 0) break;
      this.#makeRoom(sequence, blocks);
      if (sequence.holding === undefined) continue;
      this.#allocate(sequence, blocks);
      this.#schedule(sequence, chunk);
      left -= chunk;
    }
    return left;
  }

  #admit(budget: number, cutoffNs: Nanoseconds): void {
    let left = budget;
    let mayBeHeldBack = this.profile.batchWaitSteps > 0 && this.decoding > 0;
    while (left > 0 && this.mayAdmitNext) {
      const sequence = this.waiting.first;
      if (sequence === undefined || sequence.queuedNs > cutoffNs) return;
      const chunk = this.#tryAdmit(sequence, left, mayBeHeldBack ? cutoffNs : undefined);
      if (chunk === 0) return;
      if (sequence.admittedNs < 0) sequence.admittedNs = cutoffNs;
      left -= chunk;
      // Those behind the first are computed with it.
      mayBeHeldBack = false;
    }
  }

  /** Whether whoever has room waits all the same, for others to be computed in the same step. */
  #waitsForOthers(budget: number, cutoffNs: Nanoseconds): boolean {
    const wait = this.#batchWait;
    const slots = this.limits.maxSequences - this.running.length - this.lingering.length;
    let tokens = this.limits.maxTokensPerStep - budget;
    for (let place = 0; place < slots && tokens < wait.enoughTokens; place++) {
      const sequence = this.waiting.at(place);
      if (sequence === undefined || sequence.queuedNs > cutoffNs) break;
      tokens += sequence.target;
    }
    return wait.holdsBack(tokens);
  }

  /**
   * Admits a request if it has room and returns the tokens it computes now; 0 if it has to wait. With `holdCutoffNs` it may
   * be held back for others who have come by then.
   */
  #tryAdmit(sequence: Sequence, budget: number, holdCutoffNs: Nanoseconds | undefined): number {
    const { request, target } = sequence;
    const { blockTokens, chunkedPrefill } = this.limits;
    const { cache, profile } = this;
    let match = cache.match(request.sequence, this.#mostHits(sequence));
    if (this.speculative !== undefined && profile.dropLastBlockWithSpec && match.blocks > 0) {
      match = cache.match(request.sequence, match.blocks - 1);
    }
    const hits = match.blocks;
    const cached = this.#cachedTokens(sequence, hits);
    const chunk = this.#chunkOf(cached, target, budget);
    if (chunk === 0) {
      // Without chunks it waits until fewer requests decode beside it.
      if (!chunkedPrefill && this.chunks.length === 0) this.#isStalled = true;
      return 0;
    }
    const needed = this.#blocksToAdmit(request, target, cached + chunk) - hits;
    const promised = profile.admission === "toCompletion" ? this.#promisedBlocks - this.#ownedBlocks : 0;
    if (needed + match.unreferenced + promised > cache.available) {
      this.#isStalled = true;
      return 0;
    }
    if (holdCutoffNs !== undefined && this.#waitsForOthers(budget, holdCutoffNs)) return 0;
    this.waiting.takeFirst();
    sequence.holding = cache.hold(request.sequence, hits);
    this.#promisedBlocks += this.#blocksToCompletion(request);
    this.#ownedBlocks += hits;
    sequence.computed = cached;
    // A hit after a preemption is on what the request itself had computed; only the first one is a saving.
    if (sequence.cachedTokens < 0) sequence.cachedTokens = Math.min(cached, request.promptTokens);
    sequence.order = this.#admitted++;
    sequence.state = "prefilling";
    this.running.push(sequence);
    this.prefilling.push(sequence);
    this.#allocate(sequence, Math.max(0, Math.ceil((cached + chunk) / blockTokens) - hits));
    this.#schedule(sequence, chunk);
    return chunk;
  }

  #mostHits({ request, target }: Sequence): number {
    if (!this.limits.prefixReuse) return 0;
    const tokens = this.profile.recomputeLast === "block" ? target - 1 : target;
    return Math.min(Math.floor(tokens / this.limits.blockTokens), request.sequence.length >>> 1);
  }

  /** Tokens that need not be computed, which leaves at least one to sample from. */
  #cachedTokens({ request, target }: Sequence, hits: number): number {
    const { blockTokens } = this.limits;
    let cached = hits * blockTokens;
    const continues = request.continuesTokens ?? 0;
    // The part of a block that the turn before left behind is taken to live as long as the block before it.
    if (this.profile.partialReuse && continues > cached && Math.floor(continues / blockTokens) === hits)
      cached = continues;
    return Math.min(cached, target - 1);
  }

  #chunkOf(computed: number, target: number, budget: number): number {
    const rest = target - computed;
    if (rest <= budget) return rest;
    if (!this.limits.chunkedPrefill) {
      // Only what a preemption has made longer than any step; it then has the step's prompts to itself.
      return rest > this.limits.maxTokensPerStep && this.chunks.length === 0 ? rest : 0;
    }
    if (!this.profile.chunkIsWholeBlocks) return budget;
    const { blockTokens } = this.limits;
    return Math.max(0, Math.floor((computed + budget) / blockTokens) * blockTokens - computed);
  }

  #blocksToAdmit(request: EngineRequest, target: number, scheduledTokens: number): number {
    switch (this.profile.admission) {
      case "firstChunk":
        return Math.ceil(scheduledTokens / this.limits.blockTokens);
      case "fullInput":
        return Math.ceil(target / this.limits.blockTokens);
      case "toCompletion":
        return this.#blocksToCompletion(request);
    }
  }

  /** An engine that admits to completion must believe the client's bound; the others only ever meet the real length. */
  #blocksToCompletion({ promptTokens, outputTokens, maxOutputTokens }: EngineRequest): number {
    const output = this.profile.admission === "toCompletion" ? (maxOutputTokens ?? outputTokens) : outputTokens - 1;
    return Math.ceil((promptTokens + Math.max(output, outputTokens - 1)) / this.limits.blockTokens);
  }

  #schedule(sequence: Sequence, chunk: number): void {
    sequence.chunk = chunk;
    this.chunks.push(sequence);
    if (this.profile.cacheVisibleAt === "schedule") this.publish(sequence, sequence.computed + chunk);
  }

  #allocate(sequence: Sequence, blocks: number): void {
    if (blocks <= 0 || sequence.holding === undefined) return;
    this.cache.allocate(sequence.holding, blocks);
    this.#ownedBlocks += blocks;
  }
}

function blocksOf(holding: RunHolding): number {
  return holding.published + holding.unpublished;
}
