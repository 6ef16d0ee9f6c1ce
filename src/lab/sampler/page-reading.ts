import { parseSamples, type Sample } from "../../wire/prometheus-text.ts";

/** One page of metrics at one moment; what the page does not have is undefined, never 0. */
export interface PageReading {
  readonly waiting: number | undefined;
  readonly kvUsage: number | undefined;
  /** These count up, and begin at 0 when the engine does. */
  readonly counters: Readonly<Record<CounterName, number | undefined>>;
  /** When the process began, in seconds since 1970. */
  readonly startedSeconds: number | undefined;
  readonly gpus: readonly GpuReading[];
}

export type CounterName =
  | "preemptions"
  | "evictedBlocks"
  | "outputTokens"
  | "draftTokens"
  | "acceptedTokens"
  | "frontendCachedTokens"
  | "frontendCachedRequests"
  | "frontendPromptTokens"
  | "predictedCachedTokens"
  | "placedPromptTokens";

/** One card at one moment, as DCGM shows it. */
export interface GpuReading {
  readonly id: string;
  /** Names under which whoever uses the card may be known: its pod, its host. */
  readonly owners: readonly string[];
  readonly busyShare: number | undefined;
  readonly memoryUsedBytes: number | undefined;
  readonly memoryFreeBytes: number | undefined;
  readonly powerWatts: number | undefined;
}

/** The same thing under the names that engines give it, the newest first. */
const WAITING = ["vllm:num_requests_waiting", "sglang:num_queue_reqs"];
const KV_USAGE = [
  "vllm:kv_cache_usage_perc",
  "vllm:gpu_cache_usage_perc",
  "sglang:token_usage",
  "trtllm_kv_cache_utilization",
  "dynamo_component_gpu_cache_usage_percent",
];
const COUNTERS: Readonly<Record<CounterName, readonly string[]>> = {
  preemptions: ["vllm:num_preemptions_total", "vllm:num_preemptions"],
  evictedBlocks: ["warmpath_engine_evicted_blocks_total"],
  outputTokens: ["vllm:generation_tokens_total", "sglang:generation_tokens_total"],
  draftTokens: ["vllm:spec_decode_num_draft_tokens_total"],
  acceptedTokens: ["vllm:spec_decode_num_accepted_tokens_total"],
  // Of a frontend, not of an engine.
  frontendCachedTokens: ["dynamo_frontend_cached_tokens_sum"],
  frontendCachedRequests: ["dynamo_frontend_cached_tokens_count"],
  frontendPromptTokens: ["dynamo_frontend_input_sequence_tokens_sum"],
  predictedCachedTokens: ["warmpath_predicted_cached_tokens_total"],
  placedPromptTokens: ["warmpath_prompt_tokens_total"],
};
const STARTED = ["process_start_time_seconds"];
const GPU_BUSY_SHARE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";
const GPU_BUSY_PER_CENT = "DCGM_FI_DEV_GPU_UTIL";
const GPU_MEMORY_USED_MIB = "DCGM_FI_DEV_FB_USED";
const GPU_MEMORY_FREE_MIB = "DCGM_FI_DEV_FB_FREE";
const GPU_POWER_WATTS = "DCGM_FI_DEV_POWER_USAGE";
const GPU_NAMES = [GPU_BUSY_SHARE, GPU_BUSY_PER_CENT, GPU_MEMORY_USED_MIB, GPU_MEMORY_FREE_MIB, GPU_POWER_WATTS];
const BYTES_PER_MIB = 1024 * 1024;

const WANTED: ReadonlySet<string> = new Set([
  ...WAITING,
  ...KV_USAGE,
  ...Object.values(COUNTERS).flat(),
  ...STARTED,
  ...GPU_NAMES,
]);

/** Takes from a page of Prometheus' text whatever is known of engines, frontends and GPUs. */
export function readPage(text: string): PageReading {
  const samples = parseSamples(text, WANTED);
  const values = (names: readonly string[]): number[] => {
    const known = names.find((name) => samples.some((sample) => sample.name === name));
    return samples.flatMap(({ name, value }) => (name === known ? value : []));
  };
  const counters = Object.entries(COUNTERS).map(([counter, names]) => [counter, sum(values(names))]);
  return {
    waiting: sum(values(WAITING)),
    kvUsage: mean(values(KV_USAGE)),
    counters: Object.fromEntries(counters) as PageReading["counters"],
    startedSeconds: values(STARTED)[0],
    gpus: gpusOf(samples.filter(({ name }) => GPU_NAMES.includes(name))),
  };
}

function gpusOf(samples: readonly Sample[]): GpuReading[] {
  const byCard = new Map<string, Sample[]>();
  for (const sample of samples) {
    const { UUID, Hostname = "", gpu = "" } = sample.labels;
    const id = UUID ?? `${Hostname}/${gpu}`;
    byCard.set(id, [...(byCard.get(id) ?? []), sample]);
  }
  return [...byCard].map(([id, ofCard]) => {
    const { labels } = ofCard[0];
    const value = (name: string): number | undefined => ofCard.find((sample) => sample.name === name)?.value;
    const perCent = value(GPU_BUSY_PER_CENT);
    return {
      id,
      owners: [labels["pod"], labels["exported_pod"], labels["Hostname"]].flatMap((owner) => owner ?? []),
      busyShare: value(GPU_BUSY_SHARE) ?? (perCent === undefined ? undefined : perCent / 100),
      memoryUsedBytes: inBytes(value(GPU_MEMORY_USED_MIB)),
      memoryFreeBytes: inBytes(value(GPU_MEMORY_FREE_MIB)),
      powerWatts: value(GPU_POWER_WATTS),
    };
  });
}

function inBytes(mebibytes: number | undefined): number | undefined {
  return mebibytes === undefined ? undefined : Math.round(mebibytes * BYTES_PER_MIB);
}

function sum(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((before, value) => before + value, 0);
}

/** Of what is there; undefined of nothing. */
export function mean(values: readonly number[]): number | undefined {
  const total = sum(values);
  return total === undefined ? undefined : total / values.length;
}
