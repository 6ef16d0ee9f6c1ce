import type { Nanoseconds } from "../core/clock.ts";
import { WarmpathError } from "../core/errors.ts";
import { DueHeap } from "./due-heap.ts";
import type { RequestEnd, SessionScript, SessionSupply, WorkloadRequest, WorkloadSource } from "./request.ts";
import { SessionRun } from "./session-run.ts";

/**
 * An open loop: sessions begin when the workload says so, however slow the answers are; only the follow-ups inside a
 * session wait for them. The supply gives its sessions in the order of `startNs`; a failed turn ends its session.
 */
export class Schedule implements WorkloadSource {
  readonly #supply: SessionSupply;
  readonly #offsetNs: Nanoseconds;
  readonly #followUps = new DueHeap<SessionRun>();
  readonly #underWay = new Map<number, SessionRun>();
  #nextOrdinal = 0;
  #nextScript: SessionScript | undefined;
  #abandonedTurns = 0;

  constructor(supply: SessionSupply, offsetNs: Nanoseconds = 0) {
    this.#supply = supply;
    this.#offsetNs = offsetNs;
    this.#nextScript = supply.session(0);
  }

  get abandonedTurns(): number {
    return this.#abandonedTurns;
  }

  nextDueNs(): Nanoseconds {
    return Math.min(this.#followUps.firstNs, this.#nextStartNs());
  }

  take(): WorkloadRequest {
    const dueNs = this.nextDueNs();
    const run = this.#followUps.firstNs <= this.#nextStartNs() ? this.#followUps.take() : this.#begin();
    if (run === undefined) throw new WarmpathError("WP_INVALID_STATE", "no request is due in the schedule");
    const request = run.next(dueNs);
    // Most requests of a trace are alone in their session; nothing needs to be remembered of those.
    if (run.turnsLeft > 0) this.#underWay.set(request.id, run);
    return request;
  }

  ended(request: WorkloadRequest, { nowNs, completed, outputTokens }: RequestEnd): void {
    const run = this.#underWay.get(request.id);
    if (run === undefined) return;
    this.#underWay.delete(request.id);
    if (!completed) {
      this.#abandonedTurns += run.turnsLeft;
      return;
    }
    run.answered(request, outputTokens ?? request.outputTokens);
    this.#followUps.add(nowNs + run.thinkNs, run);
  }

  #nextStartNs(): Nanoseconds {
    const script = this.#nextScript;
    return script === undefined ? Infinity : this.#offsetNs + (script.startNs ?? 0);
  }

  #begin(): SessionRun | undefined {
    const script = this.#nextScript;
    if (script === undefined) return undefined;
    this.#nextScript = this.#supply.session(++this.#nextOrdinal);
    return new SessionRun(script);
  }
}
