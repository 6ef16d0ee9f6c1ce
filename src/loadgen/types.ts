import type { Accounting } from "../core/accounts.ts";
import type { Nanoseconds } from "../core/clock.ts";
import type { RequestRecord } from "../core/request-record.ts";
import type { RollingSnapshot } from "../measure/rolling/rolling-metrics.ts";
import type { WorkloadRequest, WorkloadSource } from "../workload/request.ts";
import type { ClientHealth } from "./client-health.ts";
import type { LoadTotals } from "./load-totals.ts";

/** Where requests go: any endpoint that speaks OpenAI's API. */
export interface LoadTarget {
  /** With or without `/v1` at its end. */
  readonly url: string;
  /** The model that requests name. */
  readonly model: string;
  /** Sent as a bearer token. */
  readonly apiKey?: string | undefined;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Whether every request has its id as `seed`, so that it is answered alike in every run, and unlike any other. */
  readonly seedsAnswers?: boolean | undefined;
  /** Added to every body, such as `{ ignore_eos: true }`; must not have a key that a body has anyway. */
  readonly extraBody?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * What is sent next, and when: `ClosedLoop` and `Schedule` of src/workload are such sources. Its times count from the start
 * of the run.
 */
export interface LoadSource extends WorkloadSource {
  /** Only sources that keep a number of conversations under way have these two. */
  readonly concurrency?: number;
  setConcurrency?(concurrency: number, nowNs: Nanoseconds): void;
}

/** A prompt as JSON text, so that what a conversation sends again is not written again. */
export type WrittenPrompt =
  /** `json` is the list of messages. */
  | { readonly kind: "chat"; readonly json: string }
  /** `json` is the text. */
  | { readonly kind: "completion"; readonly json: string };

/** An answer that came whole. */
export interface CompletedAnswer {
  /** The content as it stood between the quotes of the JSON, pieces joined; empty if `needsAnswer` was false. */
  readonly escapedText: string;
  readonly outputTokens: number;
}

/**
 * Says the words: turns a request of the workload into what is sent, and carries answers into the turns that follow.
 * `SymbolicPrompts` and `StarterPrompts` are such writers.
 */
export interface PromptWriter {
  /** Called once per request, when it is due. */
  write(request: WorkloadRequest): WrittenPrompt;
  /** Whether the text of the answer must be kept; asked before the request is sent. */
  needsAnswer(request: WorkloadRequest): boolean;
  /**
   * Called for a completed request that another turn follows, before the source hears of its end; the next turn is due
   * when the promise resolves, and its think time after that. It must not reject. The signal ends with the run.
   */
  answered(request: WorkloadRequest, answer: CompletedAnswer, signal: AbortSignal): Promise<void> | void;
  /** No further turn of this session will come. */
  forget(session: number): void;
}

/** Everything a run of load needs to know. */
export interface LoadOptions {
  readonly target: LoadTarget;
  readonly source: LoadSource;
  readonly prompts: PromptWriter;
  /** Nothing is sent that is due later; until `stop` unless told. */
  readonly durationNs?: Nanoseconds | undefined;
  /** How long requests under way are waited for when the run ends by itself; 30 s unless told. */
  readonly drainMs?: number | undefined;
  /** Ends the run when nothing is due and nothing under way: for schedules, which have an end. */
  readonly endsWhenIdle?: boolean | undefined;
  /** A client gives up so long after the intended time; never unless told. */
  readonly timeoutMs?: number | undefined;
  /**
   * Told of every request once, when its account is settled; those that are cut off at the end included. Called on the
   * path of the stream: hand the record on and do the work elsewhere.
   */
  readonly onRecord?: ((record: RequestRecord) => void) | undefined;
  /** Told of every first token of a request, as time since the intended send. */
  readonly onFirstToken?: ((ttftNs: Nanoseconds) => void) | undefined;
  /** The moment that is 0 in all times, by `process.hrtime.bigint`; now unless told. Processes of one run share it. */
  readonly originHrtimeNs?: bigint | undefined;
}

/** What came of a run, or has come of it so far. */
export interface LoadSummary {
  readonly seconds: number;
  readonly totals: LoadTotals;
  readonly health: ClientHealth;
}

/** Load that is running. */
export interface LoadRun {
  /** Time since the start, the time of all records. */
  nowNs(): Nanoseconds;
  /** Conversations that are meant to be under way; undefined for a schedule. */
  readonly concurrency: number | undefined;
  /** Raising begins conversations at once; lowering lets running turns finish. Throws where the source has no concurrency. */
  setConcurrency(concurrency: number): void;
  /**
   * Sends nothing more, waits for what is under way, and cuts off what is left then as `unfinished`. May be called again to
   * wait otherwise: `drainMs: 0` cuts a drain short.
   */
  stop(options?: { readonly drainMs?: number }): Promise<LoadSummary>;
  /** Resolves when the run is over, by itself or by `stop`; every record has been told by then. */
  readonly finished: Promise<LoadSummary>;
  /** The last 60 s. */
  rolling(): RollingSnapshot;
  /** All requests so far; those under way are `unfinished`. */
  accounts(): Accounting;
  clientHealth(): ClientHealth;
  /** Everything so far; the totals go on counting. */
  summary(): LoadSummary;
}
