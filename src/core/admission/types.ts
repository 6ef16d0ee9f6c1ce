import type { Nanoseconds } from "../clock.ts";

/**
 * What happens when every eligible worker is busy: `queue` holds the request in the router, `shed` answers at once with a
 * reason, `engine` looks at no watermark and passes everything on.
 */
export type AdmissionMode = "queue" | "shed" | "engine";

/** From where on a replica counts as busy; a watermark that is absent is off, and reaching any one is enough. */
export interface Watermarks {
  /** Requests in flight, as a fraction of the batch slots. */
  readonly batchSlotsFraction?: number | undefined;
  /** Prefill tokens pending. */
  readonly prefillTokens?: number | undefined;
  /** Prefill tokens pending, as a multiple of the tokens of one engine step. */
  readonly prefillStepFraction?: number | undefined;
  /** KV blocks of the requests in flight, as a fraction of the pool; shared blocks count for each holder. */
  readonly kvBlocksFraction?: number | undefined;
}

/** The knobs a replica can be busy by. */
export type WatermarkName = keyof Watermarks;

/** Watermarks that keep an engine from piling up work of its own, without tuning and without idling it. */
export const DEFAULT_WATERMARKS: Watermarks = {
  // A request beyond the last slot can only wait inside the engine, bound to that worker; held here it can still go to
  // whichever worker is free first. An empty slot for one round trip costs 1/slots of a step, so no more than 1 is needed.
  batchSlotsFraction: 1,
  // `prefillTokens` is off: how many tokens are a second of prefill depends on model and GPU, which nobody knows here.
  // Far more than it takes to keep the next steps full while the router hears of the last one, so only a pile-up gets
  // there: at 8,192 tokens a step it is 131,072 tokens, some seconds of prefill. A bound, not a tuning of latency; it is
  // also the last default that Dynamo had (after 4) before it switched the check off.
  prefillStepFraction: 16,
  // Not 1: blocks that several requests share are counted for each of them, and sharing is what this router brings
  // about, so 1 would turn away work that fits. With 2 half of the held blocks may be shared; where none are, the
  // engine's own queue is still bounded by one more pool of blocks.
  kvBlocksFraction: 2,
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
