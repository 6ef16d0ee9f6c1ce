import type { Nanoseconds } from "../../core/clock.ts";
import { WarmpathError } from "../../core/errors.ts";
import type { RunHolding } from "./run-cache.ts";

/** A request as an engine gets it. */
export interface EngineRequest {
  /** The driver's own number for it, unique among the requests of the engine. */
  readonly key: number;
  readonly promptTokens: number;
  /** Tokens it will generate, at least 1. */
  readonly outputTokens: number;
  /** What the client allows, which is what an engine that admits to completion must plan with. */
  readonly maxOutputTokens?: number;
  /**
   * Sequence hashes of the full blocks of prompt and answer, as far as they have an identity; blocks behind the last one
   * are never cached.
   */
  readonly sequence: Uint32Array;
  /** Leading prompt tokens that an earlier request of the session left behind, for engines that reuse parts of blocks. */
  readonly continuesTokens?: number;
}

/** A request that ended, or its first token. */
export interface EngineSignal {
  readonly key: number;
  readonly atNs: Nanoseconds;
}

/** Tokens that came since the last report of the same request. */
export interface EngineGrowth {
  readonly key: number;
  readonly atNs: Nanoseconds;
  readonly tokens: number;
}

/** What an engine has done for a request that is not over. */
export interface EngineProgress {
  readonly outputTokens: number;
  readonly cachedTokens: number;
  /** End of the last step, in which it had its last token unless it waits again. */
  readonly lastStepNs: Nanoseconds;
  /** When the tokens came that it has, as at its end. */
  readonly tokenRuns: Float64Array;
}

/** What an engine knows of a request at its end. */
export interface EngineFinish {
  readonly key: number;
  readonly atNs: Nanoseconds;
  /** When it was first admitted; -1 if it never was. */
  readonly admittedNs: Nanoseconds;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  /** Of the output, what no report of growth has counted yet. */
  readonly unreportedTokens: number;
  readonly preemptions: number;
  /** When its tokens came, in the form `runs` of a request record; empty where the engine keeps no times. */
  readonly tokenRuns: Float64Array;
  /** True where it was cancelled before its last token. */
  readonly isCancelled: boolean;
}

/** A request inside an engine. */
export class Sequence {
  readonly request: EngineRequest;
  /** Order of admission, which is the order of the running list. */
  order = 0;
  queuedNs: Nanoseconds;
  admittedNs: Nanoseconds = -1;
  holding: RunHolding | undefined;
  /** Tokens in the KV cache; while decoding, what it was when it joined the batch. */
  computed = 0;
  generated = 0;
  reported = 0;
  /** Tokens this step computes of its prompt. */
  chunk = 0;
  state: "waiting" | "prefilling" | "decoding" | "ended" = "waiting";
  cachedTokens = -1;
  preemptions = 0;
  isCancelled = false;
  acceptance = 0;
  /** Decode step at which it joined, and at which it has its last token. */
  joinStep = 0;
  finishStep = 0;
  /** Its place among those decoded. */
  memberIndex = 0;
  /** Which steps it takes a new block in: those that equal this modulo the block size. */
  phase = 0;
  /** Token times of earlier stays in the batch, and where the present one begins in the log. */
  readonly tokenRuns: Float64Array[] = [];
  logFrom = -1;

  constructor(request: EngineRequest, queuedNs: Nanoseconds) {
    this.request = request;
    this.queuedNs = queuedNs;
  }

  /** Tokens to compute before the next one can be sampled: the prompt, and what had been generated before a preemption. */
  get target(): number {
    return this.request.promptTokens + this.generated;
  }
}

/** Throws for a request that no engine could make sense of. */
export function requireTokens({ key, promptTokens, outputTokens }: EngineRequest): void {
  if (Number.isSafeInteger(promptTokens) && Number.isSafeInteger(outputTokens) && promptTokens > 0 && outputTokens > 0)
    return;
  const lengths = `${promptTokens} prompt and ${outputTokens} output tokens`;
  throw new WarmpathError("WP_INVALID_INPUT", `request ${key} has ${lengths}; both must be whole and at least 1`);
}
