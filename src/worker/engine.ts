import type { BlockIdentity } from "../core/hash.ts";
import type { ReplicaSnapshot } from "../core/kv-index/types.ts";

/** One request to an engine. A simulated engine knows its answer beforehand; what it simulates is when. */
export interface EngineJob {
  readonly promptTokens: Uint32Array;
  /** At least one token. */
  readonly answerTokens: Uint32Array;
  readonly identity?: BlockIdentity;
}

/** Told what becomes of a job, in this order; nothing more comes after a cancellation. */
export interface EngineListener {
  /** The prompt is computed; `cachedTokens` of it were in the KV cache. */
  prefilled(cachedTokens: number): void;
  /** The answer's token at this index is there. */
  token(index: number): void;
  finished(): void;
}

export interface EngineTicket {
  /** Gives a job up; does nothing once it has finished. */
  cancel(): void;
}

/** What computes answers behind a worker's API. */
export interface Engine {
  submit(job: EngineJob, listener: EngineListener): EngineTicket;
  /** All blocks in the KV cache, as of the last event published. */
  snapshot(): ReplicaSnapshot;
}
