import { type Account, ACCOUNTS } from "../../core/accounts.ts";
import { NS_PER_MS } from "../../core/clock.ts";
import { type RequestRecord, requestRecord, UNAVAILABLE, type Unavailable } from "../../core/request-record.ts";
import { field } from "../openai-usage.ts";
import { accountOfError, parseAiperfError } from "./error.ts";
import { inMilliseconds, numberIn, textIn } from "./metric.ts";

/** Name of the file in a run's folder, unless a prefix was given to AIPerf. */
export const AIPERF_RECORDS_FILE = "profile_export.jsonl";

/** A line that was read, or what is wrong with it; lines of the warm-up are known and not measured. */
export type AiperfLine =
  | { readonly ok: true; readonly record: RequestRecord; readonly isWarmUp: boolean }
  | { readonly ok: false; readonly problem: string };

/**
 * Reads lines of `profile_export.jsonl`. Times are epoch nanoseconds, more than a number holds exactly, so they are read
 * as text and counted from the first line's start. AIPerf's `worker_id` is a process of the load generator and says
 * nothing of the backend; the worker is known only where our own key names it.
 */
export class AiperfRecordReader {
  #originNs: bigint | undefined;

  /** One line. */
  read(line: string): AiperfLine {
    let content: unknown;
    try {
      content = JSON.parse(line);
    } catch {
      return { ok: false, problem: "is not complete JSON" };
    }
    const metadata = field(content, "metadata");
    const startNs = epochNs(line, "request_start_ns");
    if (metadata === undefined || startNs === undefined) {
      return { ok: false, problem: "is not a record of AIPerf: it has no metadata.request_start_ns" };
    }
    const intendedNs = epochNs(line, "credit_issued_ns") ?? startNs;
    this.#originNs ??= intendedNs;
    const times = {
      intendedNs: Number(intendedNs - this.#originNs),
      sentNs: Number(startNs - this.#originNs),
      acknowledgedNs: sinceOrigin(epochNs(line, "request_ack_ns"), this.#originNs),
      endNs: sinceOrigin(epochNs(line, "request_end_ns"), this.#originNs),
    };
    const isWarmUp = textIn(metadata, "benchmark_phase") === "warmup";
    return { ok: true, record: recordOf(content, metadata, times), isWarmUp };
  }
}

interface LineTimes {
  readonly intendedNs: number;
  readonly sentNs: number;
  readonly acknowledgedNs: number | undefined;
  readonly endNs: number | undefined;
}

function recordOf(content: unknown, metadata: unknown, times: LineTimes): RequestRecord {
  const metrics = field(content, "metrics");
  const own = field(content, "warmpath");
  const error = parseAiperfError(field(content, "error"));
  const cancelled = field(metadata, "was_cancelled") === true;
  const session = textIn(metadata, "conversation_id");
  const turn = numberIn(metadata, "turn_index") ?? 0;
  const outputTokens = valueOf(metrics, "output_sequence_length") ?? 0;
  const ttftNs = durationNs(metrics, "time_to_first_token");
  const latencyNs = durationNs(metrics, "request_latency");
  const placedAfterNs = numberIn(own, "placed_after_ns");
  const ownAccount = ACCOUNTS.find((account) => account === field(own, "account"));
  const account: Account =
    ownAccount ?? (error !== undefined ? accountOfError(error) : cancelled ? "cancelled" : "completed");
  const firstContentNs = ttftNs === undefined ? undefined : times.sentNs + ttftNs;
  return requestRecord({
    // Ids that AIPerf draws differ from run to run; its numbering of sessions is the same for the same input.
    id: textIn(own, "id") ?? `${numberIn(metadata, "session_num") ?? textIn(metadata, "x_request_id") ?? ""}:${turn}`,
    session: session ?? textIn(metadata, "x_correlation_id"),
    turn,
    intendedNs: times.intendedNs,
    sentNs: field(own, "was_sent") === false ? undefined : times.sentNs,
    placedNs: placedAfterNs === undefined ? undefined : times.intendedNs + placedAfterNs,
    firstByteNs: times.acknowledgedNs,
    firstContentNs,
    lastContentNs: latencyNs === undefined ? undefined : times.sentNs + latencyNs,
    endNs: account === "unfinished" ? undefined : (times.endNs ?? times.sentNs + (latencyNs ?? 0)),
    promptTokens: valueOf(metrics, "input_sequence_length") ?? valueOf(metrics, "error_isl") ?? 0,
    outputTokens,
    predictedCachedTokens: numberIn(own, "predicted_cached_tokens") ?? UNAVAILABLE,
    observedCachedTokens: cachedTokens(metrics, own),
    worker: textIn(own, "backend_worker") ?? (ownAccount === undefined ? UNAVAILABLE : undefined),
    attempts: numberIn(own, "attempts") ?? 1,
    account,
    failure: error === undefined ? undefined : { status: error.code, message: error.message || (error.type ?? "") },
    tokenTimes: chunkTimes(metrics, firstContentNs),
  });
}

function cachedTokens(metrics: unknown, own: unknown): number | Unavailable {
  return numberIn(own, "observed_cached_tokens") ?? valueOf(metrics, "usage_prompt_cache_read_tokens") ?? UNAVAILABLE;
}

function chunkTimes(metrics: unknown, firstContentNs: number | undefined): RequestRecord["tokenTimes"] {
  const gaps = field(field(metrics, "inter_chunk_latency"), "value");
  if (firstContentNs === undefined || !Array.isArray(gaps)) return undefined;
  const timesNs = new Float64Array(gaps.length + 1);
  timesNs[0] = firstContentNs;
  gaps.forEach((gapMs: unknown, i) => {
    timesNs[i + 1] = timesNs[i] + (typeof gapMs === "number" ? Math.round(gapMs * NS_PER_MS) : 0);
  });
  return { form: "chunks", timesNs };
}

function valueOf(metrics: unknown, tag: string): number | undefined {
  return numberIn(field(metrics, tag), "value");
}

function durationNs(metrics: unknown, tag: string): number | undefined {
  const metric = field(metrics, tag);
  const value = numberIn(metric, "value");
  const unit = textIn(metric, "unit");
  if (value === undefined || unit === undefined) return undefined;
  const ms = inMilliseconds({ unit, avg: value, percentiles: [] })?.avg;
  return ms === undefined ? undefined : Math.round(ms * NS_PER_MS);
}

const EPOCH_FIELDS = {
  credit_issued_ns: /"credit_issued_ns":\s*(\d+)/,
  request_start_ns: /"request_start_ns":\s*(\d+)/,
  request_ack_ns: /"request_ack_ns":\s*(\d+)/,
  request_end_ns: /"request_end_ns":\s*(\d+)/,
};

function epochNs(line: string, name: keyof typeof EPOCH_FIELDS): bigint | undefined {
  const digits = EPOCH_FIELDS[name].exec(line)?.[1];
  return digits === undefined ? undefined : BigInt(digits);
}

function sinceOrigin(ns: bigint | undefined, originNs: bigint): number | undefined {
  return ns === undefined ? undefined : Number(ns - originNs);
}
