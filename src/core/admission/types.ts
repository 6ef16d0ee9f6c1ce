import type { Nanoseconds } from "../clock.ts";

/**
 * What happens when every eligible worker is busy: `queue` holds the request in the router, `shed` answers at once with a
 * reason, `engine` looks at no watermark and passes everything on.
 */
export const ADMISSION_MODES = ["queue", "shed", "engine"] as const;
export type AdmissionMode = (typeof ADMISSION_MODES)[number];

/** From where on a replica counts as busy; a watermark that is absent is off, and reaching any one is enough. */
export interface Watermarks {
  /** Requests in flight, as a fraction of the batch slots. */
  readonly batchSlotsFraction?: number | undefined;
  /** Prefill tokens pending. */
  readonly prefillTokens?: number | undefined;
  /** Prefill tokens pending, as a multiple of the tokens of one engine step. */
  readonly prefillStepFraction?: number | undefined;
  /** KV blocks of the requests in flight that no two of them share, as a fraction of the pool. */
  readonly kvBlocksFraction?: number | undefined;
}

/** The knobs a replica can be busy by. */
export type WatermarkName = keyof Watermarks;

/**
 * Where nothing else is said. `prefillTokens` is off: how many tokens are a second of prefill depends on model and GPU, which
 * nobody knows here. Blocks that requests share are not counted, since sharing is what this router brings about.
 */
export const DEFAULT_WATERMARKS: Readonly<Record<AdmissionMode, Watermarks>> = {
  // A bound, and not a way to be fast: what waits here goes to whoever is free first, and its cache is elsewhere. So an engine
  // may have as much waiting as it computes at once, and only a pile-up comes here (docs/decisions/0018).
  queue: { batchSlotsFraction: 2, prefillStepFraction: 64, kvBlocksFraction: 2 },
  // Whoever would have to wait is better told at once.
  shed: { batchSlotsFraction: 1, prefillStepFraction: 16, kvBlocksFraction: 1 },
  engine: {},
};

/** Bounds of the central queue. */
export interface QueueLimits {
  readonly maxRequests: number;
  readonly maxWaitNs: Nanoseconds;
}

/** All of admission that can be set. */
export interface AdmissionRules {
  readonly mode: AdmissionMode;
  readonly watermarks: Watermarks;
  readonly queue: QueueLimits;
}

/** The kinds of refusal; stable, for clients to act on. */
export type ShedCode =
  | "overloaded"
  | "queue-full"
  | "deadline"
  | "queue-timeout"
  | "no-eligible-worker"
  // Limits of the client's own API key; whoever checks keys asks before the router does.
  | "key_requests"
  | "key_tokens"
  | "key_streams";

/** Why a request was turned away: for machines in the fields, for people in the message. */
export interface ShedReason {
  readonly code: ShedCode;
  /** The setting that decided. */
  readonly knob: string;
  readonly value: number;
  readonly threshold: number;
  readonly retryAfterMs: number;
  /** One plain sentence with knob, value and threshold. */
  readonly message: string;
}
