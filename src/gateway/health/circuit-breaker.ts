/** `closed` lets requests through, `open` none, `half-open` a few that show whether the worker is well again. */
export type CircuitState = "closed" | "open" | "half-open";

/** How a request fared with a worker: `lost` is one that the worker could not be reached for, or was gone in the middle of. */
export type AttemptFate = "succeeded" | "failed" | "lost";

export interface CircuitOptions {
  /** Probes in a row that must fail to open a circuit. */
  readonly failedProbes: number;
  /** Requests in a row that must fail. */
  readonly failedAttempts: number;
  /** How long a worker that failed requests is left alone, however well it answers probes; doubles each time. */
  readonly restMs: number;
  /** The longest such rest. Whoever does well for that long begins with a short one again. */
  readonly longestRestMs: number;
  /** How long a trial must have streamed to count as one that succeeded, where it has not ended by then. */
  readonly provenMs: number;
}

export const DEFAULT_CIRCUIT: CircuitOptions = {
  failedProbes: 2,
  failedAttempts: 3,
  restMs: 1_000,
  longestRestMs: 60_000,
  provenMs: 5_000,
};

/**
 * Whether a worker is given requests, from what probes and requests say of it. A probe that succeeds says little about a worker
 * that fails requests: such a one rests, longer each time, and must then prove itself by a request that succeeds.
 */
export class CircuitBreaker {
  readonly #options: CircuitOptions;
  #state: CircuitState = "closed";
  #reason = "";
  #failedProbes = 0;
  #failedAttempts = 0;
  #lostAttempts = 0;
  #rests = 0;
  #restsUntilMs = 0;
  #closedMs = Number.NEGATIVE_INFINITY;
  #halfOpenedMs = 0;
  /** Since when a trial streams. */
  #answeringMs = Number.POSITIVE_INFINITY;
  /** Requests failed, so that probes alone cannot close the circuit. */
  #needsTrial = false;

  constructor(options: CircuitOptions = DEFAULT_CIRCUIT) {
    this.#options = options;
  }

  get state(): CircuitState {
    return this.#state;
  }

  /** Why it is in this state, in words; empty before the first change. */
  get reason(): string {
    return this.#reason;
  }

  probed(succeeded: boolean, nowMs: number): void {
    const { failedProbes, provenMs } = this.#options;
    if (!succeeded) {
      this.#failedProbes++;
      if (this.#failedProbes >= failedProbes && this.#state !== "open") {
        this.#become("open", `${this.#failedProbes} probes in a row failed`);
      }
      return;
    }
    this.#failedProbes = 0;
    if (this.#state === "half-open" && nowMs - this.#answeringMs >= provenMs) this.#close("a trial streams", nowMs);
    if (this.#state !== "open" || nowMs < this.#restsUntilMs) return;
    if (this.#needsTrial) {
      this.#halfOpenedMs = nowMs;
      this.#answeringMs = Number.POSITIVE_INFINITY;
      this.#become("half-open", "rested, and answers probes");
    } else this.#close("answers probes again", nowMs);
  }

  /**
   * A request that went to the worker at `sentMs` has ended. Whoever loses requests is shut out in any case. A worker that
   * answers and fails them may not be the one to blame, so `mayOpen` is asked first.
   */
  attempted(fate: AttemptFate, sentMs: number, nowMs: number, mayOpen: () => boolean = () => true): void {
    if (fate === "succeeded") {
      this.#failedAttempts = 0;
      this.#lostAttempts = 0;
      if (this.#state === "half-open") this.#close("a request succeeded", nowMs);
      return;
    }
    this.#failedAttempts++;
    if (fate === "lost") this.#lostAttempts++;
    const { failedAttempts } = this.#options;
    if (this.#state === "half-open" && sentMs >= this.#halfOpenedMs) this.trip("the trial failed", nowMs);
    else if (this.#state === "closed" && this.#failedAttempts >= failedAttempts) {
      if (this.#lostAttempts < failedAttempts && !mayOpen()) return;
      this.trip(`${this.#failedAttempts} requests in a row failed`, nowMs);
    }
  }

  /** A request that went to the worker at `sentMs` has its first token. */
  answered(sentMs: number, nowMs: number): void {
    if (this.#state !== "half-open" || sentMs < this.#halfOpenedMs) return;
    this.#answeringMs = Math.min(this.#answeringMs, nowMs);
  }

  /** Opens the circuit because of how requests fared; does nothing if it is open. */
  trip(reason: string, nowMs: number): void {
    if (this.#state === "open") return;
    const { restMs, longestRestMs } = this.#options;
    if (this.#state === "closed" && nowMs - this.#closedMs >= longestRestMs) this.#rests = 0;
    const rest = Math.min(longestRestMs, restMs * 2 ** this.#rests);
    this.#rests++;
    this.#restsUntilMs = nowMs + rest;
    this.#needsTrial = true;
    this.#become("open", `${reason}; rests for ${rest} ms`);
  }

  #close(reason: string, nowMs: number): void {
    this.#failedAttempts = 0;
    this.#lostAttempts = 0;
    this.#needsTrial = false;
    this.#closedMs = nowMs;
    this.#become("closed", reason);
  }

  #become(state: CircuitState, reason: string): void {
    this.#state = state;
    this.#reason = reason;
  }
}
