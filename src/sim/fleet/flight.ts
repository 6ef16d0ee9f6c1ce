import type { Account } from "../../core/accounts.ts";
import type { Nanoseconds } from "../../core/clock.ts";
import { fullBlocks } from "../../core/hash.ts";
import type { KeptBlocks } from "../../core/open-request.ts";
import { type RequestRecord, RUN_NUMBERS, UNAVAILABLE } from "../../core/request-record.ts";
import type { ShedReason } from "../../core/admission/types.ts";
import type { WorkloadRequest } from "../../workload/request.ts";
import type { EngineFinish, EngineProgress } from "../engine/engine-request.ts";

/** One request on its way through the fleet. */
export class Flight {
  readonly index: number;
  readonly id: string;
  readonly request: WorkloadRequest;
  /** Sequence hashes of prompt and answer; nothing once it is over. */
  sequence: Uint32Array;
  /** Leading prompt tokens that the turn before left behind. */
  readonly continuesTokens: number;
  worker = -1;
  workerName: string | undefined;
  attempts = 0;
  placedNs: Nanoseconds | undefined;
  /** When the engine had its first token. */
  firstNs: Nanoseconds | undefined;
  endNs: Nanoseconds | undefined;
  predictedCachedTokens: number | undefined;
  decision: number | undefined;
  outputTokens = 0;
  /** When the engine had its last token. */
  lastNs: Nanoseconds | undefined;
  /** When it had its last token of those it got, where it did not get all. */
  brokenOffNs: Nanoseconds | undefined;
  cachedTokens = 0;
  /** Of its output, what no report of growth has counted. */
  unreportedTokens = 0;
  tokenRuns: Float64Array | undefined;
  /** What its worker holds of prompt and answer, for a router that no events tell. */
  kept: KeptBlocks | undefined;
  account: Account = "unfinished";
  shedReason: ShedReason | undefined;
  failure: string | undefined;
  /** True once the engine has it, until it says that it is over. */
  isInEngine = false;
  /** True from its placement until its worker is done with it. */
  isOnWorker = false;
  /** True once the client has its answer, or has given up. */
  isSettled = false;

  constructor(index: number, request: WorkloadRequest, sequence: Uint32Array, continuesTokens: number) {
    this.index = index;
    this.id = String(request.id);
    this.request = request;
    this.sequence = sequence;
    this.continuesTokens = continuesTokens;
  }

  /** Takes down what the engine says at its end; not as one object, of which a run would keep as many as it has requests. */
  noteFinish(finish: EngineFinish): void {
    this.lastNs = finish.atNs;
    this.outputTokens = finish.outputTokens;
    this.cachedTokens = finish.cachedTokens;
    this.unreportedTokens = finish.unreportedTokens;
    this.tokenRuns = finish.tokenRuns;
  }

  /** Takes down how far it was when it was no longer waited for; nothing if no engine had it. */
  noteProgress(progress: EngineProgress | undefined): void {
    if (progress === undefined) return;
    this.outputTokens = progress.outputTokens;
    this.cachedTokens = progress.cachedTokens;
    this.brokenOffNs = progress.lastStepNs;
    this.tokenRuns = progress.tokenRuns;
  }

  /** Notes what whoever heard the answer can tell of the cache; the last token was sampled and never computed. */
  keep(blockTokens: number): void {
    const blocks = fullBlocks(this.request.promptTokens + this.outputTokens - 1, blockTokens);
    this.kept = { sequence: this.sequence, blocks };
  }

  /** The request's record; token times reach the client `toClientNs` after the engine has them. */
  record(toClientNs: Nanoseconds): RequestRecord {
    const { request, firstNs, tokenRuns } = this;
    const firstContentNs = firstNs === undefined ? undefined : firstNs + toClientNs;
    // Without a first token there is no last one, whatever a preempted prompt had been through.
    const lastNs = firstNs === undefined ? undefined : (this.lastNs ?? this.brokenOffNs);
    const hasTimes = tokenRuns !== undefined && tokenRuns.length > 0;
    return {
      id: this.id,
      session: request.sessionName,
      turn: request.turn,
      intendedNs: request.arrivalNs,
      sentNs: request.arrivalNs,
      placedNs: this.placedNs,
      firstByteNs: firstContentNs,
      firstContentNs,
      lastContentNs: lastNs === undefined ? undefined : lastNs + toClientNs,
      endNs: this.endNs,
      promptTokens: request.promptTokens,
      outputTokens: this.outputTokens,
      predictedCachedTokens: this.predictedCachedTokens ?? UNAVAILABLE,
      observedCachedTokens: lastNs === undefined ? UNAVAILABLE : this.cachedTokens,
      worker: this.workerName,
      attempts: this.attempts,
      account: this.account,
      shedReason: this.shedReason,
      failure: this.failure === undefined ? undefined : { status: undefined, message: this.failure },
      decision: this.decision === undefined ? undefined : String(this.decision),
      tokenTimes: hasTimes ? { form: "runs", runs: shifted(tokenRuns, toClientNs) } : undefined,
    };
  }
}

function shifted(runs: Float64Array, byNs: Nanoseconds): Float64Array {
  if (byNs === 0) return runs;
  const copy = runs.slice();
  for (let at = 0; at < copy.length; at += RUN_NUMBERS) copy[at] += byNs;
  return copy;
}
