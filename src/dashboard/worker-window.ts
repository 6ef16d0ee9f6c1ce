/** What requests of the last seconds say of the worker that served them. */
export interface WorkerRates {
  readonly requestsPerSecond: number;
  /** Null where nothing ended there, or nobody tells. */
  readonly hitShare: number | null;
}

/** An ended request, as far as it concerns its worker. */
export interface ServedRequest {
  readonly worker: string;
  readonly endMs: number;
  readonly promptTokens: number;
  /** Undefined where the endpoint does not tell. */
  readonly cachedTokens: number | undefined;
}

/** The requests that each worker served in the last seconds. */
export class WorkerWindow {
  readonly #windowMs: number;
  readonly #served: ServedRequest[] = [];
  /** Those before it have left the window. */
  #first = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** Requests come in the order of their end. */
  add(request: ServedRequest): void {
    this.#served.push(request);
  }

  /** Rates by worker; one that served nothing is not in it. */
  rates(nowMs: number): ReadonlyMap<string, WorkerRates> {
    this.#forgetBefore(nowMs - this.#windowMs);
    const sums = new Map<string, { requests: number; prompt: number; cached: number }>();
    for (let i = this.#first; i < this.#served.length; i++) {
      const { worker, promptTokens, cachedTokens } = this.#served[i];
      const sum = sums.get(worker) ?? { requests: 0, prompt: 0, cached: 0 };
      sums.set(worker, sum);
      sum.requests += 1;
      if (cachedTokens === undefined) continue;
      sum.prompt += promptTokens;
      sum.cached += cachedTokens;
    }
    const seconds = this.#windowMs / 1000;
    return new Map(
      [...sums].map(([worker, { requests, prompt, cached }]) => [
        worker,
        { requestsPerSecond: requests / seconds, hitShare: prompt === 0 ? null : cached / prompt },
      ]),
    );
  }

  #forgetBefore(startMs: number): void {
    while (this.#first < this.#served.length && this.#served[this.#first].endMs < startMs) this.#first++;
    // Moved down only when half of the list is gone, so that forgetting costs as little as keeping.
    if (2 * this.#first > this.#served.length) this.#served.splice(0, this.#first);
    else return;
    this.#first = 0;
  }
}
