import type { Nanoseconds } from "../clock.ts";
import type { LoadModel } from "../load/load-model.ts";
import { AdmissionQueue, type ExpiredEntry } from "./admission-queue.ts";
import { isBusy } from "./busy.ts";
import { drainMs, retryAfterMs } from "./retry-after.ts";
import {
  deadlineReason,
  displacedReason,
  noEligibleWorkerReason,
  overloadedReason,
  queueFullReason,
  queueTimeoutReason,
} from "./shed-reason.ts";
import type { AdmissionMode, AdmissionRules, ShedReason, Watermarks } from "./types.ts";

/** What admission needs to know of a request that asks to wait. */
export interface Applicant {
  readonly id: string;
  readonly priority?: number;
  readonly deadlineNs?: Nanoseconds;
}

/** The answer to a request that cannot be placed now; `displaced` left the queue for it. */
export type Verdict<T> =
  | { readonly kind: "held"; readonly displaced?: { readonly item: T; readonly reason: ShedReason } }
  | { readonly kind: "refused"; readonly reason: ShedReason };

interface Trial {
  readonly most: number;
  readonly ids: Set<string>;
}

/**
 * Whether work is taken, held or refused: the same for every policy. Owns the central queue and the watermarks, and gives every
 * refusal its reason and the time after which to come back.
 */
export class Admission<T> {
  readonly queue: AdmissionQueue<T>;
  readonly #load: LoadModel;
  /** Replicas that must prove themselves, with the requests by which they do. */
  readonly #trials = new Map<number, Trial>();
  #mode: AdmissionMode;
  #watermarks: Watermarks;

  constructor(rules: AdmissionRules, load: LoadModel) {
    this.#mode = rules.mode;
    this.queue = new AdmissionQueue(rules.queue);
    this.#watermarks = rules.watermarks;
    this.#load = load;
  }

  get mayHold(): boolean {
    return this.#mode === "queue";
  }

  /** Changes the rules for all that is decided from now on; what waits in the queue goes on waiting. */
  setRules({ mode, watermarks, queue }: AdmissionRules): void {
    this.#mode = mode;
    this.#watermarks = watermarks;
    this.queue.setLimits(queue);
  }

  /** Whether a replica has all the work it should get; never where that is left to the engines. */
  isBusy(replica: number): boolean {
    if (this.#isAtTrialLimit(replica)) return true;
    return this.#mode !== "engine" && isBusy(replica, this.#load.columns, this.#watermarks);
  }

  /** Lets so many requests at a time onto a replica, beside those it has now; undefined takes it off trial. */
  setTrials(replica: number, requests: number | undefined): void {
    if (requests === undefined) this.#trials.delete(replica);
    else this.#trials.set(replica, { most: requests, ids: new Set() });
  }

  /** A request was placed on a replica. */
  placed(replica: number, id: string): void {
    if (this.#trials.size > 0) this.#trials.get(replica)?.ids.add(id);
  }

  /** A request is no longer on its replica. */
  left(replica: number, id: string): void {
    if (this.#trials.size > 0) this.#trials.get(replica)?.ids.delete(id);
  }

  /** Judges a request that could not be placed; `ready` are the replicas that could serve it, `fleetSize` all there are. */
  judge(item: T, applicant: Applicant, ready: readonly number[], fleetSize: number, nowNs: Nanoseconds): Verdict<T> {
    if (ready.length === 0) return { kind: "refused", reason: noEligibleWorkerReason(fleetSize) };
    if (!this.mayHold) return { kind: "refused", reason: this.#overloaded(ready, fleetSize, nowNs) };
    const { id, deadlineNs } = applicant;
    const priority = applicant.priority ?? 0;
    if (deadlineNs !== undefined && deadlineNs <= nowNs) {
      return { kind: "refused", reason: deadlineReason(0, 0, this.#retryAfterMs(ready, nowNs)) };
    }
    const pushed = this.queue.push(item, { id, priority, nowNs, deadlineNs });
    if (pushed.kind === "queued") return { kind: "held" };
    const againMs = this.#queueDrainMs(ready, nowNs);
    if (pushed.kind === "full") {
      return { kind: "refused", reason: queueFullReason(this.queue.size, this.queue.limits, againMs) };
    }
    const { entry } = pushed;
    const reason = displacedReason(entry.priority, priority, this.queue.limits, againMs);
    return { kind: "held", displaced: { item: entry.item, reason } };
  }

  /** Takes out what has waited too long, with the reason for each. */
  expire(ready: readonly number[], nowNs: Nanoseconds): { item: T; reason: ShedReason }[] {
    return this.queue.expire(nowNs).map((expired) => ({
      item: expired.entry.item,
      reason: this.#expiryReason(expired, ready, nowNs),
    }));
  }

  #expiryReason({ entry, reason }: ExpiredEntry<T>, ready: readonly number[], nowNs: Nanoseconds): ShedReason {
    const waitedNs = nowNs - entry.queuedNs;
    const againMs = this.#retryAfterMs(ready, nowNs);
    return reason === "deadline" && entry.deadlineNs !== undefined
      ? deadlineReason(waitedNs, entry.deadlineNs - entry.queuedNs, againMs)
      : queueTimeoutReason(waitedNs, entry.expiresNs - entry.queuedNs, againMs);
  }

  #overloaded(ready: readonly number[], fleetSize: number, nowNs: Nanoseconds): ShedReason {
    const againMs = this.#retryAfterMs(ready, nowNs);
    const { columns } = this.#load;
    const proven = ready.filter((replica) => !this.#isAtTrialLimit(replica));
    // Nobody is busy, and yet the policy placed nothing: then nobody was eligible in its eyes.
    return (
      overloadedReason(proven, proven.length, columns, this.#watermarks, againMs) ?? noEligibleWorkerReason(fleetSize)
    );
  }

  #isAtTrialLimit(replica: number): boolean {
    if (this.#trials.size === 0) return false;
    const trial = this.#trials.get(replica);
    return trial !== undefined && trial.ids.size >= trial.most;
  }

  /** When there is room again: for somebody who comes back, behind all that already wait. */
  #retryAfterMs(ready: readonly number[], nowNs: Nanoseconds): number {
    const { columns, drainRates } = this.#load;
    const againMs = retryAfterMs(ready, ready.length, columns, this.#watermarks, drainRates, nowNs);
    return this.queue.size === 0 ? againMs : Math.max(againMs, this.#queueDrainMs(ready, nowNs));
  }

  #queueDrainMs(ready: readonly number[], nowNs: Nanoseconds): number {
    let perSecond = 0;
    for (const replica of ready) perSecond += this.#load.drainRates.perSecond(replica, nowNs).completionsPerSecond;
    return drainMs(this.queue.size, perSecond);
  }
}
