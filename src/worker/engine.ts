import type { Nanoseconds } from "../core/clock.ts";
import type { BlockIdentity } from "../core/hash.ts";
import type { ReplicaSnapshot } from "../core/kv-index/types.ts";

/** One request to an engine. A simulated engine knows its answer beforehand; what it simulates is when. */
export interface EngineJob {
  readonly promptTokens: Uint32Array;
  /** What the client will see of the answer, and the next turn sends again. */
  readonly answerTokens: Uint32Array;
  /** Whether the engine also generates the token that ends an answer, which no client sees. */
  readonly hasEndToken: boolean;
  /** What the client allows; an engine that admits to completion plans with it. */
  readonly maxOutputTokens?: number;
  readonly identity?: BlockIdentity;
}

/** Told what becomes of a job; nothing more comes after a refusal, the end, or a cancellation. */
export interface EngineListener {
  /** The job can never run here; told instead of everything else. */
  refused(reason: string): void;
  /** More tokens are there, the one that ends the answer included. */
  grew(tokens: number): void;
  /** All tokens are there; `cachedTokens` of the prompt were in the KV cache, and the job waited so long for a place. */
  finished(cachedTokens: number, queuedNs: Nanoseconds): void;
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

/** Tokens the engine generates for a job. */
export function outputTokensOf({ answerTokens, hasEndToken }: EngineJob): number {
  return answerTokens.length + (hasEndToken ? 1 : 0);
}

/** Prompt and answer as one sequence, which is what the next turn begins with. */
export function contextOf({ promptTokens, answerTokens }: EngineJob): Uint32Array {
  const context = new Uint32Array(promptTokens.length + answerTokens.length);
  context.set(promptTokens);
  context.set(answerTokens, promptTokens.length);
  return context;
}
