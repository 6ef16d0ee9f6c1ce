import { NS_PER_SECOND, type Nanoseconds } from "../core/clock.ts";
import { WarmpathError } from "../core/errors.ts";
import { DueHeap } from "./due-heap.ts";
import type { RequestEnd, SessionScript, SessionSupply, WorkloadRequest, WorkloadSource } from "./request.ts";
import { SessionRun } from "./session-run.ts";

/** How a closed loop is driven. */
export interface ClosedLoopSettings {
  /** Sessions under way at once. */
  readonly concurrency: number;
  /** Most requests sent per second; unlimited unless told. */
  readonly maxRateRps?: number;
  /** The first sessions begin evenly over this time; all at once unless told. */
  readonly rampNs?: Nanoseconds;
  /** How long a client whose request failed waits before it begins anew; a second unless told. */
  readonly failureDelayNs?: Nanoseconds;
  /**
   * When surplus clients leave after the concurrency was lowered: when their session is over, or already after the turn
   * that is under way, so that a lowered load is soon there; after the session unless told.
   */
  readonly surplusLeaves?: "after-session" | "after-turn";
  /** Told of a session that is given up between two turns because its client was one too many. */
  readonly onGivenUp?: (session: number) => void;
}

/**
 * A fixed number of sessions under way: when one has had its last answer, the next begins at once. The n-th session to
 * begin is the n-th of the supply, so content does not depend on how fast answers come.
 *
 * A failed turn ends its session, since there is no history to go on with; its client begins a new one after a delay,
 * without which an instant refusal would be asked again at the same instant for ever.
 */
export class ClosedLoop implements WorkloadSource {
  readonly #supply: SessionSupply;
  readonly #followUps = new DueHeap<SessionRun>();
  readonly #starts = new DueHeap<null>();
  readonly #underWay = new Map<number, SessionRun>();
  readonly #spacingNs: Nanoseconds;
  readonly #failureDelayNs: Nanoseconds;
  readonly #leavesAfterTurn: boolean;
  readonly #onGivenUp: ((session: number) => void) | undefined;
  #concurrency: number;
  /** Clients there are now: waiting to begin, thinking, or waiting for an answer. */
  #clients = 0;
  #nextOrdinal = 0;
  #nextScript: SessionScript | undefined;
  #earliestNs: Nanoseconds = -Infinity;
  #abandonedTurns = 0;

  constructor(supply: SessionSupply, settings: ClosedLoopSettings, nowNs: Nanoseconds = 0) {
    const { concurrency, maxRateRps, rampNs = 0, failureDelayNs = NS_PER_SECOND } = settings;
    this.#supply = supply;
    this.#nextScript = supply.session(0);
    this.#concurrency = checkedConcurrency(concurrency);
    if (maxRateRps !== undefined && !(maxRateRps > 0)) {
      throw new WarmpathError("WP_INVALID_INPUT", `maxRateRps must be more than 0, got ${maxRateRps}`);
    }
    this.#spacingNs = maxRateRps === undefined ? 0 : Math.round(NS_PER_SECOND / maxRateRps);
    this.#failureDelayNs = failureDelayNs;
    this.#leavesAfterTurn = settings.surplusLeaves === "after-turn";
    this.#onGivenUp = settings.onGivenUp;
    for (let client = 0; client < concurrency; client++) {
      this.#addClient(nowNs + Math.round((rampNs * client) / concurrency));
    }
  }

  get abandonedTurns(): number {
    return this.#abandonedTurns;
  }

  get concurrency(): number {
    return this.#concurrency;
  }

  /** More clients begin at once; surplus ones leave when their session, or their turn, is over. */
  setConcurrency(concurrency: number, nowNs: Nanoseconds): void {
    this.#concurrency = checkedConcurrency(concurrency);
    while (this.#clients < concurrency) this.#addClient(nowNs);
    while (this.#clients > concurrency && this.#starts.size > 0) {
      this.#starts.take();
      this.#clients--;
    }
    while (this.#leavesAfterTurn && this.#clients > concurrency) {
      const run = this.#followUps.take();
      if (run === undefined) return;
      this.#giveUp(run);
    }
  }

  nextDueNs(): Nanoseconds {
    return Math.max(Math.min(this.#followUps.firstNs, this.#nextStartNs()), this.#earliestNs);
  }

  take(): WorkloadRequest {
    const dueNs = this.nextDueNs();
    const run = this.#followUps.firstNs <= this.#nextStartNs() ? this.#followUps.take() : this.#begin();
    if (run === undefined) throw new WarmpathError("WP_INVALID_STATE", "no request is due in the closed loop");
    this.#earliestNs = dueNs + this.#spacingNs;
    const request = run.next(dueNs);
    this.#underWay.set(request.id, run);
    return request;
  }

  ended(request: WorkloadRequest, { nowNs, completed, outputTokens }: RequestEnd): void {
    const run = this.#underWay.get(request.id);
    if (run === undefined) throw new WarmpathError("WP_UNKNOWN_REQUEST", `request ${request.id} is not under way`);
    this.#underWay.delete(request.id);
    if (completed && run.turnsLeft > 0) {
      if (this.#leavesAfterTurn && this.#clients > this.#concurrency) return this.#giveUp(run);
      run.answered(request, outputTokens ?? request.outputTokens);
      this.#followUps.add(nowNs + run.thinkNs, run);
      return;
    }
    this.#abandonedTurns += run.turnsLeft;
    this.#clients--;
    if (this.#clients < this.#concurrency) this.#addClient(completed ? nowNs : nowNs + this.#failureDelayNs);
  }

  #giveUp(run: SessionRun): void {
    this.#abandonedTurns += run.turnsLeft;
    this.#clients--;
    this.#onGivenUp?.(run.session);
  }

  #addClient(atNs: Nanoseconds): void {
    this.#clients++;
    this.#starts.add(atNs, null);
  }

  /** Once the sessions have run out, nobody begins any more. */
  #nextStartNs(): Nanoseconds {
    return this.#nextScript === undefined ? Infinity : this.#starts.firstNs;
  }

  #begin(): SessionRun | undefined {
    const script = this.#nextScript;
    if (script === undefined || this.#starts.take() === undefined) return undefined;
    this.#nextScript = this.#supply.session(++this.#nextOrdinal);
    return new SessionRun(script);
  }
}

function checkedConcurrency(concurrency: number): number {
  if (Number.isInteger(concurrency) && concurrency >= 0) return concurrency;
  throw new WarmpathError("WP_INVALID_INPUT", `concurrency must be a whole number, 0 or more, got ${concurrency}`);
}
