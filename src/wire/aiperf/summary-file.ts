import { field } from "../openai-usage.ts";
import { type AiperfError, parseAiperfError } from "./error.ts";
import { type AiperfMetric, encodeAiperfMetric, numberIn, parseAiperfMetric, textIn } from "./metric.ts";

/** Name of the file in a run's folder, unless a prefix was given to AIPerf. */
export const AIPERF_SUMMARY_FILE = "profile_export_aiperf.json";

/** The schema that we write: metrics with `count` and `sum`. */
const WRITTEN_SCHEMA = "1.1";

/** The content of `profile_export_aiperf.json`: one run in numbers. */
export interface AiperfSummary {
  /** Undefined in files from before November 2025. */
  readonly schemaVersion: string | undefined;
  readonly aiperfVersion: string | undefined;
  /** Metrics by tag, such as `time_to_first_token`. */
  readonly metrics: ReadonlyMap<string, AiperfMetric>;
  /** What AIPerf was asked to do, as it wrote it. */
  readonly inputConfig: Readonly<Record<string, unknown>>;
  readonly wasCancelled: boolean;
  readonly errors: readonly AiperfErrorGroup[];
  readonly startTime: string | undefined;
  readonly endTime: string | undefined;
  readonly gpus: readonly AiperfGpu[];
}

/** Requests that failed alike. */
export interface AiperfErrorGroup {
  readonly error: AiperfError;
  readonly count: number;
}

/** A GPU that AIPerf read by DCGM while the run went on. */
export interface AiperfGpu {
  readonly name: string;
  readonly model: string | undefined;
  readonly metrics: ReadonlyMap<string, AiperfMetric>;
}

/** What was read, or in one line why it was not. */
export type ParsedSummary =
  | { readonly ok: true; readonly summary: AiperfSummary }
  | { readonly ok: false; readonly problem: string };

/** Reads the text of a summary. Unknown keys are ignored: every top-level object with a `unit` is a metric. */
export function parseAiperfSummary(text: string): ParsedSummary {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    return { ok: false, problem: `is not complete JSON: ${(error as SyntaxError).message}` };
  }
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    return { ok: false, problem: "is not a summary of AIPerf: it is no object" };
  }
  const metrics = metricsOf(content);
  if (!metrics.has("request_count") && !metrics.has("error_request_count")) {
    return { ok: false, problem: "is not a summary of AIPerf: it has neither request_count nor error_request_count" };
  }
  return {
    ok: true,
    summary: {
      schemaVersion: textIn(content, "schema_version"),
      aiperfVersion: textIn(content, "aiperf_version"),
      metrics,
      inputConfig: objectIn(content, "input_config"),
      wasCancelled: field(content, "was_cancelled") === true,
      errors: errorGroupsOf(field(content, "error_summary")),
      startTime: textIn(content, "start_time"),
      endTime: textIn(content, "end_time"),
      gpus: gpusOf(field(content, "telemetry_data")),
    },
  };
}

/** What we write of a cell, beside AIPerf's own keys. */
export interface WrittenSummary {
  readonly benchmarkId: string;
  readonly metrics: ReadonlyMap<string, AiperfMetric>;
  readonly inputConfig: object;
  readonly errors: readonly AiperfErrorGroup[];
  /** ISO 8601 without a zone, as AIPerf has it. */
  readonly startTime: string;
  readonly endTime: string;
  /** Our own facts, under a key of their own that AIPerf's readers ignore. */
  readonly warmpath: object;
}

/** The text of a summary in AIPerf's order of keys. */
export function writeAiperfSummary(summary: WrittenSummary): string {
  const metrics = Array.from(summary.metrics, ([tag, metric]) => [tag, encodeAiperfMetric(metric)] as const);
  const content = {
    schema_version: WRITTEN_SCHEMA,
    benchmark_id: summary.benchmarkId,
    ...Object.fromEntries(metrics),
    input_config: summary.inputConfig,
    was_cancelled: false,
    error_summary: summary.errors.map(({ error: { code, type, message }, count }) => ({
      error_details: { code: code ?? null, type: type ?? null, message },
      count,
    })),
    start_time: summary.startTime,
    end_time: summary.endTime,
    warmpath: summary.warmpath,
  };
  return `${JSON.stringify(content, null, 2)}\n`;
}

function metricsOf(content: object): Map<string, AiperfMetric> {
  const metrics = new Map<string, AiperfMetric>();
  for (const [tag, value] of Object.entries(content)) {
    const metric = parseAiperfMetric(value);
    if (metric !== undefined) metrics.set(tag, metric);
  }
  return metrics;
}

function errorGroupsOf(value: unknown): AiperfErrorGroup[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((group): AiperfErrorGroup[] => {
    const error = parseAiperfError(field(group, "error_details"));
    const count = numberIn(group, "count");
    return error === undefined || count === undefined ? [] : [{ error, count }];
  });
}

function gpusOf(telemetry: unknown): AiperfGpu[] {
  return Object.entries(objectIn(telemetry, "endpoints")).flatMap(([endpoint, value]) =>
    Object.entries(objectIn(value, "gpus")).map(([key, gpu]): AiperfGpu => {
      const host = textIn(gpu, "hostname") ?? endpoint;
      const model = textIn(gpu, "gpu_name");
      return { name: `${host} ${key}`, model, metrics: metricsOf(objectIn(gpu, "metrics")) };
    }),
  );
}

function objectIn(value: unknown, name: string): Readonly<Record<string, unknown>> {
  const found = field(value, name);
  if (typeof found !== "object" || found === null || Array.isArray(found)) return {};
  return found as Readonly<Record<string, unknown>>;
}
