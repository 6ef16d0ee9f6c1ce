const MS_PER_MINUTE = 60_000;

/**
 * So many units a minute, saved up to a minute's worth. It may be overdrawn: what a request will cost is not known before it
 * has ended, so the debt is paid off by time before anything else is given out.
 */
export class TokenBucket {
  readonly perMinute: number;
  #level: number;
  #atMs: number;

  /** Starts full. */
  constructor(perMinute: number, nowMs: number) {
    this.perMinute = perMinute;
    this.#level = perMinute;
    this.#atMs = nowMs;
  }

  /** What may be spent; below zero while it is overdrawn. */
  level(nowMs: number): number {
    const grown = (Math.max(0, nowMs - this.#atMs) * this.perMinute) / MS_PER_MINUTE;
    return Math.min(this.perMinute, this.#level + grown);
  }

  spend(units: number, nowMs: number): void {
    this.#level = this.level(nowMs) - units;
    this.#atMs = Math.max(this.#atMs, nowMs);
  }

  /** How long until a whole unit may be spent; 0 if it may now. */
  waitMs(nowMs: number): number {
    return Math.max(0, ((1 - this.level(nowMs)) * MS_PER_MINUTE) / this.perMinute);
  }
}
