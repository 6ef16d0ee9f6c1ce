import { type Nanoseconds, NS_PER_MS } from "../../core/clock.ts";
import { type RequestRecord, UNAVAILABLE } from "../../core/request-record.ts";

/** What a record does not know of itself. */
export interface LineContext {
  /** Epoch nanoseconds of the run's own time 0. */
  readonly originNs: bigint;
  /** Number of its conversation, or of itself where it has none. */
  readonly sessionNumber: number;
  readonly isWarmUp: boolean;
  /** Gaps between chunks in their order; undefined where only their counts were kept. */
  readonly chunkGapsMs: readonly number[] | undefined;
}

/** One line of `profile_export.jsonl`; what AIPerf has no field for stands under `warmpath`. */
export function writeAiperfLine(record: RequestRecord, context: LineContext): string {
  // Epoch nanoseconds exceed what a JSON number of JavaScript holds, so metadata is put together as text.
  const metadata = [
    `"session_num":${context.sessionNumber}`,
    `"x_request_id":${JSON.stringify(record.id)}`,
    `"x_correlation_id":${JSON.stringify(record.session ?? record.id)}`,
    `"conversation_id":${JSON.stringify(record.session ?? null)}`,
    `"turn_index":${record.turn}`,
    `"credit_issued_ns":${epoch(record.intendedNs, context)}`,
    `"request_start_ns":${epoch(startNs(record), context)}`,
    `"request_ack_ns":${epoch(record.firstByteNs, context)}`,
    `"request_end_ns":${epoch(record.endNs, context)}`,
    // AIPerf's own workers are its processes; ours is one.
    `"worker_id":"warmpath"`,
    `"record_processor_id":"warmpath"`,
    `"benchmark_phase":"${context.isWarmUp ? "warmup" : "profiling"}"`,
    `"was_cancelled":${record.account === "cancelled"}`,
    `"cancellation_time_ns":${record.account === "cancelled" ? epoch(record.endNs, context) : "null"}`,
  ].join(",");
  const parts = [`"metadata":{${metadata}}`, `"metrics":${JSON.stringify(metricsOf(record, context))}`];
  parts.push(`"error":${JSON.stringify(errorOf(record))}`, `"warmpath":${JSON.stringify(ownFields(record))}`);
  return `{${parts.join(",")}}`;
}

/** The error of a request that did not complete, as AIPerf would have it; null for one that did. */
export function errorOf(record: RequestRecord): { code: number | null; type: string; message: string } | null {
  if (record.account === "completed") return null;
  const message = record.failure?.message ?? record.shedReason?.message ?? record.account;
  const code = record.failure?.status ?? STATUS_OF_ACCOUNT[record.account] ?? null;
  return { code, type: TYPE_OF_ACCOUNT[record.account], message };
}

const STATUS_OF_ACCOUNT: Partial<Record<RequestRecord["account"], number>> = { shed: 429, cancelled: 499 };

const TYPE_OF_ACCOUNT: Readonly<Record<Exclude<RequestRecord["account"], "completed">, string>> = {
  shed: "Too Many Requests",
  rejected: "Rejected By Worker",
  failed: "Request Failed",
  timedOut: "TimeoutError",
  cancelled: "RequestCancellationError",
  unfinished: "Unfinished",
};

function metricsOf(record: RequestRecord, { chunkGapsMs }: LineContext): object {
  if (record.account !== "completed") return { error_isl: tokens(record.promptTokens) };
  const { firstContentNs, lastContentNs, outputTokens } = record;
  const fromNs = startNs(record);
  const decodeNs = (lastContentNs ?? 0) - (firstContentNs ?? 0);
  return {
    input_sequence_length: tokens(record.promptTokens),
    output_sequence_length: tokens(outputTokens),
    ...(firstContentNs === undefined ? {} : { time_to_first_token: milliseconds(firstContentNs - fromNs) }),
    ...(lastContentNs === undefined ? {} : { request_latency: milliseconds(lastContentNs - fromNs) }),
    ...(outputTokens > 1 && decodeNs > 0 ? { inter_token_latency: milliseconds(decodeNs / (outputTokens - 1)) } : {}),
    ...(chunkGapsMs === undefined ? {} : { inter_chunk_latency: { value: chunkGapsMs, unit: "ms" } }),
    ...(record.observedCachedTokens === UNAVAILABLE
      ? {}
      : { usage_prompt_cache_read_tokens: tokens(record.observedCachedTokens) }),
  };
}

function ownFields(record: RequestRecord): object {
  const { placedNs, intendedNs, worker, predictedCachedTokens, observedCachedTokens } = record;
  return {
    id: record.id,
    account: record.account,
    ...(record.sentNs === undefined ? { was_sent: false } : {}),
    ...(worker === undefined ? {} : { backend_worker: worker }),
    attempts: record.attempts,
    ...(placedNs === undefined ? {} : { placed_after_ns: placedNs - intendedNs }),
    ...(predictedCachedTokens === UNAVAILABLE ? {} : { predicted_cached_tokens: predictedCachedTokens }),
    ...(observedCachedTokens === UNAVAILABLE ? {} : { observed_cached_tokens: observedCachedTokens }),
    ...(record.shedReason === undefined ? {} : { shed_reason: record.shedReason }),
  };
}

/** AIPerf counts from the moment of sending; of what was never sent, from when it should have been. */
function startNs({ sentNs, intendedNs }: RequestRecord): Nanoseconds {
  return sentNs ?? intendedNs;
}

function epoch(ns: Nanoseconds | undefined, { originNs }: LineContext): string {
  return ns === undefined ? "null" : String(originNs + BigInt(Math.round(ns)));
}

function tokens(value: number): { value: number; unit: "tokens" } {
  return { value, unit: "tokens" };
}

function milliseconds(ns: number): { value: number; unit: "ms" } {
  return { value: ns / NS_PER_MS, unit: "ms" };
}
