import { NS_PER_MS, NS_PER_SECOND } from "../../core/clock.ts";
import { type RequestRecord, UNAVAILABLE } from "../../core/request-record.ts";
import { DurationHistogram } from "../../measure/duration-histogram.ts";
import { tpotNs, wireTtftNs } from "../../measure/latencies.ts";
import { percentileOfSorted } from "../../measure/percentile.ts";
import { meanOf } from "../../measure/sample.ts";
import { addGaps, chunkTimesNs } from "../../measure/token-gaps.ts";
import { accountInWindow, isInWindow, type MeasurementWindow } from "../../measure/window.ts";
import { writeAiperfCsv } from "../../wire/aiperf/csv.ts";
import { AIPERF_PERCENTILES, type AiperfMetric } from "../../wire/aiperf/metric.ts";
import { type AiperfErrorGroup, writeAiperfSummary } from "../../wire/aiperf/summary-file.ts";
import { errorOf, writeAiperfLine } from "../../wire/aiperf/write-record.ts";
import type { ReportCell } from "./cell.ts";

/** The files that AIPerf would have written of a cell. */
export interface AiperfFiles {
  readonly summary: string;
  readonly csv: string;
  readonly records: readonly string[];
}

/** What a cell's entry does not say. */
export interface ExportContext {
  /** Milliseconds since the epoch at the run's own time 0. */
  readonly startedMs: number;
  readonly command: string | undefined;
  readonly model: string | undefined;
}

/** Writes a cell in AIPerf's form; requests of the warm-up are marked as such, as AIPerf does. */
export function aiperfFiles(
  cell: ReportCell,
  records: readonly RequestRecord[],
  window: MeasurementWindow,
  context: ExportContext,
): AiperfFiles {
  const own = records.filter((record) => isInWindow(record, window)).map((record) => settled(record, window));
  const metrics = metricsOf(own);
  const origin = BigInt(Math.round(context.startedMs)) * BigInt(NS_PER_MS);
  const sessions = new Map<string, number>();
  const lines = records
    .filter(({ intendedNs }) => intendedNs < window.endNs)
    .map((record) => {
      const key = record.session ?? record.id;
      const sessionNumber = sessions.get(key) ?? sessions.size;
      sessions.set(key, sessionNumber);
      const times = record.tokenTimes === undefined ? undefined : chunkTimesNs(record.tokenTimes);
      return writeAiperfLine(settled(record, window), {
        originNs: origin,
        sessionNumber,
        isWarmUp: !isInWindow(record, window),
        chunkGapsMs: times === undefined ? undefined : gapsMs(times),
      });
    });
  const { concurrency, rateRps, speed, workers } = cell.level;
  const isoAt = (ns: number): string => new Date(context.startedMs + ns / NS_PER_MS).toISOString().replace("Z", "");
  return {
    summary: writeAiperfSummary({
      benchmarkId: cell.recordsId,
      metrics,
      inputConfig: {
        endpoint: { model_names: context.model === undefined ? [] : [context.model], type: "chat", streaming: true },
        input:
          speed === undefined
            ? {}
            : { fixed_schedule: true, ...(speed === 1 ? {} : { synthesis: { speedup_ratio: speed } }) },
        loadgen: {
          ...(concurrency === undefined ? {} : { concurrency }),
          ...(rateRps === undefined ? {} : { request_rate: rateRps }),
        },
        ...(context.command === undefined ? {} : { cli_command: context.command }),
      },
      errors: errorGroups(own),
      startTime: isoAt(window.startNs),
      endTime: isoAt(Math.max(window.endNs, ...own.map(({ endNs }) => endNs ?? 0))),
      warmpath: {
        arm: cell.arm,
        policy: cell.policy ?? null,
        level: cell.level,
        workers: workers ?? null,
        run: cell.run,
        seed: cell.seed ?? null,
      },
    }),
    csv: writeAiperfCsv(metrics),
    records: lines,
  };
}

/** A request that was not settled when the drain was over counts as unfinished. */
function settled(record: RequestRecord, window: MeasurementWindow): RequestRecord {
  const account = accountInWindow(record, window);
  return account === record.account ? record : { ...record, account };
}

function metricsOf(own: readonly RequestRecord[]): Map<string, AiperfMetric> {
  const completed = own.filter(({ account }) => account === "completed");
  const lost = own.filter(({ account }) => account !== "completed");
  const seconds = spanSeconds(own);
  const metrics = new Map<string, AiperfMetric>();
  const add = (tag: string, metric: AiperfMetric | undefined): void => {
    if (metric !== undefined) metrics.set(tag, metric);
  };
  const ms = (of: (record: RequestRecord) => number | undefined): number[] =>
    completed.flatMap((record) => {
      const ns = of(record);
      return ns === undefined ? [] : [ns / NS_PER_MS];
    });
  const total = (of: readonly RequestRecord[], tokens: (record: RequestRecord) => number): number =>
    of.reduce((sum, record) => sum + tokens(record), 0);
  const outputTokens = total(completed, (record) => record.outputTokens);
  const itl = ms(tpotNs);
  add("request_throughput", scalar("requests/sec", seconds === 0 ? undefined : completed.length / seconds));
  add(
    "request_latency",
    distribution(
      "ms",
      ms(({ lastContentNs, sentNs, intendedNs }) =>
        lastContentNs === undefined ? undefined : lastContentNs - (sentNs ?? intendedNs),
      ),
    ),
  );
  add("request_count", scalar("requests", completed.length));
  add("time_to_first_token", distribution("ms", ms(wireTtftNs)));
  add("inter_token_latency", distribution("ms", itl));
  add("output_token_throughput", scalar("tokens/sec", seconds === 0 ? undefined : outputTokens / seconds));
  add(
    "output_token_throughput_per_user",
    distribution(
      "tokens/sec/user",
      itl.filter((value) => value > 0).map((value) => 1000 / value),
    ),
  );
  add(
    "output_sequence_length",
    distribution(
      "tokens",
      completed.map((record) => record.outputTokens),
    ),
  );
  add(
    "input_sequence_length",
    distribution(
      "tokens",
      completed.map((record) => record.promptTokens),
    ),
  );
  add("inter_chunk_latency", gapsMetric(completed));
  add("total_output_tokens", scalar("tokens", outputTokens));
  add("benchmark_duration", scalar("sec", seconds));
  add(
    "total_isl",
    scalar(
      "tokens",
      total(completed, (record) => record.promptTokens),
    ),
  );
  add("total_osl", scalar("tokens", outputTokens));
  if (lost.length > 0) {
    add("error_request_count", scalar("requests", lost.length));
    add(
      "error_isl",
      distribution(
        "tokens",
        lost.map((record) => record.promptTokens),
      ),
    );
    add(
      "total_error_isl",
      scalar(
        "tokens",
        total(lost, (record) => record.promptTokens),
      ),
    );
  }
  const cached = completed.flatMap(({ observedCachedTokens }) =>
    observedCachedTokens === UNAVAILABLE ? [] : [observedCachedTokens],
  );
  add("usage_prompt_cache_read_tokens", distribution("tokens", cached));
  return metrics;
}

/** From the first request to the last answer. */
function spanSeconds(own: readonly RequestRecord[]): number {
  let first = Infinity;
  let last = -Infinity;
  for (const { sentNs, intendedNs, endNs } of own) {
    first = Math.min(first, sentNs ?? intendedNs);
    last = Math.max(last, endNs ?? -Infinity);
  }
  return last > first ? (last - first) / NS_PER_SECOND : 0;
}

function scalar(unit: string, avg: number | undefined): AiperfMetric | undefined {
  return avg === undefined ? undefined : { unit, avg, percentiles: [] };
}

function distribution(unit: string, values: readonly number[]): AiperfMetric | undefined {
  if (values.length === 0) return undefined;
  const sorted = Float64Array.from(values).sort();
  const mean = meanOf(sorted);
  const squares = sorted.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return {
    unit,
    avg: mean,
    min: sorted[0],
    max: sorted[sorted.length - 1],
    std: sorted.length < 2 ? 0 : Math.sqrt(squares / (sorted.length - 1)),
    count: sorted.length,
    sum: mean * sorted.length,
    percentiles: shares().map((share) => [share, percentileOfSorted(sorted, share)] as const),
  };
}

/** Millions of gaps are kept in buckets, which know everything but the deviation. */
function gapsMetric(completed: readonly RequestRecord[]): AiperfMetric | undefined {
  const histogram = new DurationHistogram();
  for (const { tokenTimes } of completed) if (tokenTimes !== undefined) addGaps(tokenTimes, histogram);
  if (histogram.count === 0) return undefined;
  const { minNs, maxNs } = histogram.toGapCounts();
  const avg = histogram.meanNs() / NS_PER_MS;
  return {
    unit: "ms",
    avg,
    min: minNs / NS_PER_MS,
    max: maxNs / NS_PER_MS,
    count: histogram.count,
    sum: avg * histogram.count,
    percentiles: shares().map((share) => [share, histogram.percentileNs(share) / NS_PER_MS] as const),
  };
}

function shares(): number[] {
  return AIPERF_PERCENTILES.map((name) => Number(name.slice(1)) / 100);
}

function errorGroups(own: readonly RequestRecord[]): AiperfErrorGroup[] {
  const groups = new Map<string, AiperfErrorGroup>();
  for (const record of own) {
    const error = errorOf(record);
    if (error === null) continue;
    const key = JSON.stringify(error);
    const count = (groups.get(key)?.count ?? 0) + 1;
    groups.set(key, { error: { ...error, code: error.code ?? undefined }, count });
  }
  return [...groups.values()].sort((a, b) => b.count - a.count);
}

function gapsMs(timesNs: Float64Array): number[] {
  return Array.from(timesNs.subarray(1), (ns, i) => (ns - timesNs[i]) / NS_PER_MS);
}
