import { Rng } from "../../core/rng.ts";
import { stepsToCover, StepClock, runPs } from "../timing/step-run.ts";
import { type DecodeAffine, PS_PER_NS, type StepShape, type StepTimer } from "../timing/step-timer.ts";

/** What the clients do: a fixed number of requests, always `concurrency` of them under way. */
export interface ClosedLoopClients {
  readonly concurrency: number;
  readonly requests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Lengths are uniform in [ratio x length, length]; 1 keeps them fixed. */
  readonly lengthRangeRatio: number;
  /** Share of each prompt, after a slot's first, that the engine finds in its prefix cache. */
  readonly cachedInputShare: number;
  /**
   * All slots send at once. `burst`: lengths alone decide whether they drift apart. `spread`: each slot's first output is
   * cut short at a different place, so that later prompts arrive one by one; the TPOT of those first requests is left out.
   */
  readonly start: "burst" | "spread";
  readonly seed: number;
}

/** The engine's rules that decide when a prompt is computed. */
export interface ClosedLoopEngine {
  readonly maxTokensPerStep: number;
  readonly maxSequences: number;
  /** Whether decodes run on in a step that computes prompts, or stand still until no prompt waits. */
  readonly prefillSteps: "mixed" | "alone";
  /** Without it a prompt waits until it fits what is left of the step whole. */
  readonly chunkedPrefill: boolean;
  readonly kvPoolTokens: number;
  /** What must be free to admit: the prompt alone, or prompt and output of all admitted. */
  readonly admission: "full-input" | "to-completion";
  /** Steps a prompt may be held back so that several are computed together; 0 computes it at once. */
  readonly batchWaitSteps: number;
  readonly batchWaitTokens: number;
  /** From the client's send to the scheduler, tokenising included. */
  readonly frontendNs: number;
  /** Frontend work that requests queue for one after another, per prompt token. */
  readonly frontendTokenNs: number;
}

/** What the clients saw, over all requests. */
export interface ClosedLoopPrediction {
  readonly meanTtftMs: number;
  readonly medianTtftMs: number;
  readonly meanTpotMs: number;
  readonly medianTpotMs: number;
  readonly requestsPerSecond: number;
  readonly meanDecodeBatch: number;
  readonly steps: number;
  readonly jumps: number;
}

/** Predicts what closed-loop clients see of one engine, by running its scheduler on the step-time formula. */
export function predictClosedLoop(
  timer: StepTimer,
  clients: ClosedLoopClients,
  engine: ClosedLoopEngine,
): ClosedLoopPrediction {
  return new ClosedLoop(timer, clients, engine).run();
}

class ClosedLoop {
  readonly #timer: StepTimer;
  readonly #engine: ClosedLoopEngine;
  readonly #clients: ClosedLoopClients;
  readonly #input: Int32Array;
  readonly #output: Int32Array;
  readonly #sentNs: Float64Array;
  readonly #arrivalNs: Float64Array;
  readonly #firstNs: Float64Array;
  readonly #doneNs: Float64Array;
  readonly #computed: Int32Array;
  /** Tokens still to generate; what was generated before a preemption is recomputed as input. */
  readonly #left: Int32Array;
  readonly #waiting: number[] = [];
  readonly #prefilling: number[] = [];
  readonly #decoding: number[] = [];
  readonly #clock: StepClock = new StepClock(0);
  readonly #step: StepShape = {
    prefillTokens: 0,
    prefillPairs: 0,
    decodeSequences: 0,
    decodeTokens: 0,
    contextTokens: 0,
    sampledRows: 0,
    prefillSequences: 0,
  };
  readonly #affine: DecodeAffine = { aPs: 0, bPs: 0, validSteps: 0 };
  #sent = 0;
  #arrived = 0;
  #frontendFreeNs = 0;
  #context = 0;
  #held = 0;
  #waitedSteps = 0;
  #steps = 0;
  #jumps = 0;
  #decodeTokens = 0;

  constructor(timer: StepTimer, clients: ClosedLoopClients, engine: ClosedLoopEngine) {
    const n = clients.requests;
    this.#timer = timer;
    this.#engine = engine;
    this.#clients = clients;
    this.#input = new Int32Array(n);
    this.#output = new Int32Array(n);
    this.#left = new Int32Array(n);
    this.#computed = new Int32Array(n);
    this.#sentNs = new Float64Array(n);
    this.#arrivalNs = new Float64Array(n);
    this.#firstNs = new Float64Array(n);
    this.#doneNs = new Float64Array(n);
    const rng = new Rng(clients.seed).stream("lengths");
    const draw = (length: number): number => {
      const low = Math.floor(length * clients.lengthRangeRatio);
      return Math.max(1, low + rng.below(length - low + 1));
    };
    for (let i = 0; i < n; i++) {
      this.#input[i] = draw(clients.inputTokens);
      this.#output[i] = draw(clients.outputTokens);
      if (clients.start === "spread" && i < clients.concurrency) {
        // One slot per stretch of the output, in random order of length: evenly spread phases, not random clumps.
        this.#output[i] = Math.max(1, Math.round((clients.outputTokens * (i + rng.uniform())) / clients.concurrency));
      }
      this.#left[i] = this.#output[i];
      if (i >= clients.concurrency) this.#computed[i] = Math.floor(this.#input[i] * clients.cachedInputShare);
    }
  }

  run(): ClosedLoopPrediction {
    const { requests, concurrency } = this.#clients;
    for (let i = 0; i < Math.min(concurrency, requests); i++) this.#send(0);
    let finished = 0;
    while (finished < requests) {
      this.#takeArrivals();
      const planned = this.#planPrefill();
      if (!planned && this.#decoding.length === 0) {
        if (this.#arrived >= this.#sent) break; // What waits can never be admitted: a request larger than the pool.
        this.#clock.wakeAt(Math.max(this.#clock.nowNs, this.#arrivalNs[this.#arrived]));
        continue;
      }
      finished += planned ? this.#mixedStep() : this.#decodeJump();
    }
    return this.#summary(finished);
  }

  #send(atNs: number): void {
    const id = this.#sent++;
    this.#sentNs[id] = atNs;
    const start = Math.max(this.#frontendFreeNs, atNs);
    this.#frontendFreeNs = start + this.#engine.frontendTokenNs * this.#input[id];
    this.#arrivalNs[id] = Math.round(this.#frontendFreeNs + this.#engine.frontendNs);
  }

  #takeArrivals(): void {
    while (this.#arrived < this.#sent && this.#arrivalNs[this.#arrived] <= this.#clock.nowNs)
      this.#waiting.push(this.#arrived++);
  }

  #need(id: number): number {
    return this.#input[id] + (this.#output[id] - this.#left[id]);
  }

  #fits(id: number): boolean {
    const engine = this.#engine;
    if (this.#prefilling.length + this.#decoding.length >= engine.maxSequences) return false;
    const tokens = engine.admission === "full-input" ? this.#need(id) + 1 : this.#input[id] + this.#output[id];
    return this.#held + tokens <= engine.kvPoolTokens;
  }

  /** Fills the step's prefill part; false where this step is decode only. */
  #planPrefill(): boolean {
    const step = this.#step;
    const engine = this.#engine;
    step.prefillTokens = 0;
    step.prefillPairs = 0;
    step.prefillSequences = 0;
    const beside = engine.prefillSteps === "mixed" ? this.#decoding.length : 0;
    step.sampledRows = beside;
    let budget = engine.maxTokensPerStep - beside;
    for (const id of this.#prefilling) budget -= this.#chunk(id, budget);
    if (this.#waiting.length > 0 && this.#heldBack(budget)) return step.prefillTokens > 0;
    while (this.#waiting.length > 0 && budget > 0) {
      const id = this.#waiting[0];
      if (!this.#fits(id)) break;
      if (!engine.chunkedPrefill && this.#need(id) > budget && step.prefillTokens > 0) break;
      this.#waiting.shift();
      this.#prefilling.push(id);
      this.#held += engine.admission === "full-input" ? this.#need(id) + 1 : this.#input[id] + this.#output[id];
      budget -= this.#chunk(id, budget);
    }
    return step.prefillTokens > 0;
  }

  /** Whether waiting prompts are held back so that more of them are computed in one step. */
  #heldBack(budget: number): boolean {
    const engine = this.#engine;
    if (engine.batchWaitSteps === 0 || this.#decoding.length === 0 || !this.#fits(this.#waiting[0])) return false;
    let tokens = this.#decoding.length;
    for (const id of this.#waiting) {
      tokens += this.#need(id);
      if (tokens >= engine.batchWaitTokens || tokens > budget) break;
    }
    if (this.#waitedSteps < engine.batchWaitSteps && tokens < engine.batchWaitTokens) return true;
    this.#waitedSteps = 0;
    return false;
  }

  #chunk(id: number, budget: number): number {
    const rest = this.#need(id) - this.#computed[id];
    const tokens = this.#engine.chunkedPrefill ? Math.min(rest, budget) : rest;
    if (tokens <= 0) return 0;
    const step = this.#step;
    step.prefillTokens += tokens;
    step.prefillPairs += tokens * (this.#computed[id] + tokens / 2);
    step.prefillSequences += 1;
    this.#computed[id] = this.#computed[id] + tokens;
    if (tokens === rest) step.sampledRows += 1;
    return tokens;
  }

  #mixedStep(): number {
    const step = this.#step;
    const alone = this.#engine.prefillSteps === "alone";
    step.decodeSequences = alone ? 0 : this.#decoding.length;
    step.decodeTokens = step.decodeSequences;
    step.contextTokens = alone ? 0 : this.#context;
    this.#clock.advance(this.#timer.stepPs(step));
    this.#steps += 1;
    this.#jumps += 1;
    let finished = alone ? 0 : this.#emit(1);
    for (let i = 0; i < this.#prefilling.length;) {
      const id = this.#prefilling[i];
      if (this.#computed[id] < this.#need(id)) {
        i += 1;
        continue;
      }
      this.#prefilling.splice(i, 1);
      if (this.#firstNs[id] === 0) this.#firstNs[id] = this.#clock.nowNs;
      this.#left[id] = this.#left[id] - 1;
      this.#context += this.#need(id);
      this.#decoding.push(id);
      if (this.#left[id] === 0) finished += this.#finish(this.#decoding.length - 1);
    }
    this.#preempt();
    return finished;
  }

  /** Advances all decodes at once, up to the first event that changes the batch. */
  #decodeJump(): number {
    const batch = this.#decoding.length;
    const run = this.#timer.decodeAffine(batch, this.#context, this.#affine);
    let steps = run.validSteps;
    for (const id of this.#decoding) if (this.#left[id] < steps) steps = this.#left[id];
    if (this.#engine.admission === "full-input") {
      steps = Math.max(1, Math.min(steps, Math.floor((this.#engine.kvPoolTokens - this.#held) / batch)));
    }
    const waiting = this.#waiting.length > 0 && this.#engine.batchWaitSteps > 0 && this.#fits(this.#waiting[0]);
    if (waiting) steps = Math.min(steps, this.#engine.batchWaitSteps - this.#waitedSteps);
    if (this.#arrived < this.#sent) {
      const aheadPs = (this.#arrivalNs[this.#arrived] - this.#clock.nowNs) * PS_PER_NS - this.#clock.remainderPs;
      steps = Math.min(steps, stepsToCover(run, aheadPs));
    }
    if (waiting) this.#waitedSteps += steps;
    this.#clock.advance(runPs(run, steps));
    this.#steps += steps;
    this.#jumps += 1;
    const finished = this.#emit(steps);
    this.#preempt();
    return finished;
  }

  /** Gives every decoding sequence `steps` more tokens and ends those that have all of theirs. */
  #emit(steps: number): number {
    const batch = this.#decoding.length;
    this.#context += steps * batch;
    this.#decodeTokens += steps * batch;
    if (this.#engine.admission === "full-input") this.#held += steps * batch;
    for (const id of this.#decoding) this.#left[id] = this.#left[id] - steps;
    let finished = 0;
    for (let i = batch - 1; i >= 0; i--) if (this.#left[this.#decoding[i]] === 0) finished += this.#finish(i);
    return finished;
  }

  #finish(at: number): number {
    const id = this.#decoding[at];
    this.#decoding.splice(at, 1);
    this.#doneNs[id] = this.#clock.nowNs;
    this.#release(id);
    if (this.#sent < this.#clients.requests) this.#send(this.#clock.nowNs);
    return 1;
  }

  #release(id: number): void {
    this.#context -= this.#need(id);
    this.#held -= this.#engine.admission === "full-input" ? this.#need(id) + 1 : this.#input[id] + this.#output[id];
  }

  /** Recomputes the newest sequences later when the pool cannot hold the next token of all. */
  #preempt(): void {
    if (this.#engine.admission !== "full-input") return;
    while (this.#decoding.length > 1 && this.#held + this.#decoding.length > this.#engine.kvPoolTokens) {
      const id = this.#decoding.pop() as number;
      this.#release(id);
      this.#computed[id] = 0;
      this.#waiting.unshift(id);
    }
  }

  #summary(finished: number): ClosedLoopPrediction {
    const ttft: number[] = [];
    const tpot: number[] = [];
    const cutShort = this.#clients.start === "spread" ? this.#clients.concurrency : 0;
    for (let id = 0; id < this.#clients.requests; id++) {
      if (this.#doneNs[id] === 0) continue;
      ttft.push((this.#firstNs[id] - this.#sentNs[id]) / 1e6);
      if (this.#output[id] > 1 && id >= cutShort)
        tpot.push((this.#doneNs[id] - this.#firstNs[id]) / 1e6 / (this.#output[id] - 1));
    }
    return {
      meanTtftMs: mean(ttft),
      medianTtftMs: median(ttft),
      meanTpotMs: mean(tpot),
      medianTpotMs: median(tpot),
      requestsPerSecond: finished / (this.#clock.nowNs / 1e9),
      meanDecodeBatch: this.#decodeTokens / Math.max(1, this.#steps),
      steps: this.#steps,
      jumps: this.#jumps,
    };
  }
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? Number.NaN : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function median(values: readonly number[]): number {
  if (values.length === 0) return Number.NaN;
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
