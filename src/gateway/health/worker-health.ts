export interface HealthThresholds {
  /** Probes in a row that must fail before a worker counts as unhealthy. */
  readonly failedProbes: number;
  /** Attempts in a row that must fail. */
  readonly failedAttempts: number;
  /** How long a worker that failed attempts is left alone, however well it answers probes; doubles each time. */
  readonly restMs: number;
  readonly longestRestMs: number;
}

export const DEFAULT_THRESHOLDS: HealthThresholds = {
  failedProbes: 2,
  failedAttempts: 3,
  restMs: 1_000,
  longestRestMs: 60_000,
};

/**
 * Whether a worker is fit to serve, from what probes and requests say. A probe that succeeds proves little about a worker that
 * fails requests, so after failed attempts it also rests for a while, longer each time, until a request succeeds.
 */
export class WorkerHealth {
  readonly #thresholds: HealthThresholds;
  #isHealthy = true;
  #failedProbes = 0;
  #failedAttempts = 0;
  #rests = 0;
  #restsUntilMs = 0;

  constructor(thresholds: HealthThresholds = DEFAULT_THRESHOLDS) {
    this.#thresholds = thresholds;
  }

  get isHealthy(): boolean {
    return this.#isHealthy;
  }

  probed(succeeded: boolean, nowMs: number): void {
    if (!succeeded) {
      this.#failedProbes++;
      if (this.#failedProbes >= this.#thresholds.failedProbes) this.#isHealthy = false;
      return;
    }
    this.#failedProbes = 0;
    if (this.#isHealthy || nowMs < this.#restsUntilMs) return;
    this.#isHealthy = true;
    // One more failure is enough to send it back.
    this.#failedAttempts = Math.min(this.#failedAttempts, this.#thresholds.failedAttempts - 1);
  }

  attempted(succeeded: boolean, nowMs: number): void {
    if (succeeded) {
      this.#failedAttempts = 0;
      this.#rests = 0;
      return;
    }
    this.#failedAttempts++;
    if (!this.#isHealthy || this.#failedAttempts < this.#thresholds.failedAttempts) return;
    const { restMs, longestRestMs } = this.#thresholds;
    this.#isHealthy = false;
    this.#restsUntilMs = nowMs + Math.min(longestRestMs, restMs * 2 ** this.#rests);
    this.#rests++;
  }
}
