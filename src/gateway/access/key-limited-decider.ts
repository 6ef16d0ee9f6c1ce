import type { ShedReason } from "../../core/admission/types.ts";
import type { DecidedRequest, NotRetried, OfferedRequest, Placement } from "../decider.ts";
import type { LocalDecider } from "../local-decider.ts";
import { ForwardingDecider } from "./forwarding-decider.ts";
import type { KeyLimits } from "./key-limits.ts";
import { KeyMetrics } from "./key-metrics.ts";

/**
 * Holds the requests of each key against its limits before the router hears of them. It stands where the one router is, so
 * that a key's limits are the same however many proxies its requests come through.
 */
export class KeyLimitedDecider extends ForwardingDecider {
  readonly #limits: KeyLimits;
  readonly #metrics: KeyMetrics;
  /** Keys of the requests under way. */
  readonly #keys = new Map<string, string>();

  constructor(inner: LocalDecider, limits: KeyLimits) {
    super(inner);
    this.#limits = limits;
    this.#metrics = new KeyMetrics(inner.metrics.registry);
  }

  offer(request: OfferedRequest, decided: DecidedRequest): void {
    const { id, key, promptTokens } = request;
    if (key === undefined) {
      this.inner.offer(request, decided);
      return;
    }
    const refusal = this.#limits.admit(key, promptTokens, performance.now());
    if (refusal !== undefined) {
      this.refused(refusal.code, key);
      decided.shed(refusal);
      return;
    }
    this.#metrics.admitted(key, promptTokens);
    this.#keys.set(id, key);
    this.inner.offer(request, new KeyedRequest(decided, () => this.#over(id, key)));
  }

  override grew(id: string, tokens: number): void {
    const key = this.#keys.get(id);
    if (key !== undefined) {
      this.#limits.spend(key, tokens, performance.now());
      this.#metrics.answered(key, tokens);
    }
    this.inner.grew(id, tokens);
  }

  override refused(reason: string, key?: string): void {
    if (key !== undefined) this.#metrics.refused(key, reason);
    this.inner.refused(reason);
  }

  #over(id: string, key: string): void {
    if (this.#keys.delete(id)) this.#limits.release(key);
  }
}

/** A request whose end frees what its key holds. */
class KeyedRequest implements DecidedRequest {
  readonly #decided: DecidedRequest;
  readonly #released: () => void;

  constructor(decided: DecidedRequest, released: () => void) {
    this.#decided = decided;
    this.#released = released;
  }

  place(placement: Placement): void {
    this.#decided.place(placement);
  }

  shed(reason: ShedReason): void {
    this.#released();
    this.#decided.shed(reason);
  }

  over(notRetried?: NotRetried): void {
    this.#released();
    this.#decided.over(notRetried);
  }
}
