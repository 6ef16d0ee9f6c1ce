import type { ShedReason } from "../../core/admission/types.ts";
import type { DecidedRequest, NotRetried, OfferedRequest, Placement } from "../decider.ts";
import { ForwardingDecider } from "./forwarding-decider.ts";

/** Limits that time alone lifts; a stream may end at any moment. */
const LIFTED_BY_TIME: ReadonlySet<string> = new Set(["key_requests", "key_tokens"]);

/**
 * How long the decider is believed. It may have other limits at any moment, of which it and whoever stands here hear in no order,
 * and one that was started again has forgotten what was used.
 */
const BELIEVED_MS = 1000;

interface Pause {
  readonly reason: ShedReason;
  /** When the limit is lifted, as far as is known. */
  readonly untilMs: number;
  /** When the decider is asked again. */
  readonly believedUntilMs: number;
}

/**
 * Listens to how the decider answers, and remembers for a moment which keys it has turned away and until when: what such a key
 * sends meanwhile need not be read, let alone made tokens of.
 */
export class KeyPauses extends ForwardingDecider {
  readonly #pauses = new Map<string, Pause>();

  offer(request: OfferedRequest, decided: DecidedRequest): void {
    const { key } = request;
    if (key === undefined) this.inner.offer(request, decided);
    else this.inner.offer(request, new OverheardRequest(decided, (reason) => this.#shed(key, reason)));
  }

  /** Why a key is not served at present; undefined if it may well be. */
  of(key: string, nowMs: number): ShedReason | undefined {
    const pause = this.#pauses.get(key);
    if (pause === undefined) return undefined;
    if (nowMs < pause.believedUntilMs) return { ...pause.reason, retryAfterMs: Math.ceil(pause.untilMs - nowMs) };
    this.#pauses.delete(key);
    return undefined;
  }

  /** Limits may have been raised. */
  forget(): void {
    this.#pauses.clear();
  }

  #shed(key: string, reason: ShedReason): void {
    if (!LIFTED_BY_TIME.has(reason.code)) return;
    const nowMs = performance.now();
    const untilMs = nowMs + reason.retryAfterMs;
    this.#pauses.set(key, { reason, untilMs, believedUntilMs: Math.min(untilMs, nowMs + BELIEVED_MS) });
  }
}

class OverheardRequest implements DecidedRequest {
  readonly #decided: DecidedRequest;
  readonly #heard: (reason: ShedReason) => void;

  constructor(decided: DecidedRequest, heard: (reason: ShedReason) => void) {
    this.#decided = decided;
    this.#heard = heard;
  }

  place(placement: Placement): void {
    this.#decided.place(placement);
  }

  shed(reason: ShedReason): void {
    this.#heard(reason);
    this.#decided.shed(reason);
  }

  over(notRetried?: NotRetried): void {
    this.#decided.over(notRetried);
  }
}
