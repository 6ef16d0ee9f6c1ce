/**
 * Prometheus' text format, as far as a scraper of engines needs it: samples with their labels. Comments, histograms' buckets and
 * whatever cannot be read are passed over.
 */
import type { ReportedLoad } from "../core/load/load-description.ts";

/** One line of a scrape. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** All samples of a scrape that are called one of these names. */
export function parseSamples(text: string, names: ReadonlySet<string>): Sample[] {
  return text.split("\n").flatMap((line) => sampleOf(line, names) ?? []);
}

/** What the engine of a scrape says of its load; undefined if it is none that we know. */
export function engineLoadOf(text: string, dpRank?: number): ReportedLoad | undefined {
  const samples = parseSamples(text, WANTED).filter(({ labels }) => isOfRank(labels, dpRank));
  const known = ENGINES.find(({ running }) => samples.some(({ name }) => name === running));
  if (known === undefined) return undefined;
  const all = (name: string): Sample[] => samples.filter((sample) => sample.name === name);
  const batchSlots = known.batchSlots === undefined ? 0 : total(all(known.batchSlots));
  const { kvBlocks, blockTokens } = known.pool(all);
  return {
    running: total(all(known.running)),
    waiting: total(all(known.waiting)),
    kvUsage: mean(known.kvUsage.map(all).find((found) => found.length > 0) ?? []),
    ...(batchSlots > 0 && { batchSlots }),
    ...(kvBlocks > 0 && { kvBlocks, ...(blockTokens > 0 && { blockTokens }) }),
  };
}

interface EngineNames {
  readonly running: string;
  readonly waiting: string;
  /** The newest name first. */
  readonly kvUsage: readonly string[];
  readonly batchSlots?: string;
  /** Blocks, and tokens in each; 0 where it does not say. */
  readonly pool: (all: (name: string) => Sample[]) => { readonly kvBlocks: number; readonly blockTokens: number };
}

/** Names of vLLM's and SGLang's production metrics; `prometheus-text.test.ts` reads scrapes of both. */
const ENGINES: readonly EngineNames[] = [
  {
    running: "vllm:num_requests_running",
    waiting: "vllm:num_requests_waiting",
    kvUsage: ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"],
    // The pool's size is a label of a gauge that is always 1.
    pool: (all) => {
      const infos = all("vllm:cache_config_info").map(({ labels }) => labels);
      const blockTokens = Number(infos[0]?.["block_size"]);
      return {
        kvBlocks: sum(infos.map((labels) => Number(labels["num_gpu_blocks"]))),
        blockTokens: blockTokens > 0 ? blockTokens : 0,
      };
    },
  },
  {
    running: "sglang:num_running_reqs",
    waiting: "sglang:num_queue_reqs",
    kvUsage: ["sglang:token_usage"],
    batchSlots: "sglang:max_running_requests",
    pool: (all) => {
      const blockTokens = mean(all("sglang:page_size"));
      const kvBlocks = blockTokens > 0 ? Math.floor(total(all("sglang:max_total_num_tokens")) / blockTokens) : 0;
      return { kvBlocks, blockTokens };
    },
  },
];

const WANTED: ReadonlySet<string> = new Set([
  ...ENGINES.flatMap(({ running, waiting, kvUsage }) => [running, waiting, ...kvUsage]),
  "vllm:cache_config_info",
  "sglang:max_running_requests",
  "sglang:max_total_num_tokens",
  "sglang:page_size",
]);

/** Engines with several ranks label each rank's samples; without a rank they all count. */
function isOfRank(labels: Readonly<Record<string, string>>, dpRank: number | undefined): boolean {
  const rank = labels["engine"] ?? labels["dp_rank"];
  return dpRank === undefined || rank === undefined || rank === `${dpRank}`;
}

function sampleOf(line: string, names: ReadonlySet<string>): Sample | undefined {
  const name = NAME.exec(line)?.[0];
  if (name === undefined || !names.has(name)) return undefined;
  const labels: Record<string, string> = {};
  let at = name.length;
  if (line[at] === "{") {
    LABEL.lastIndex = at + 1;
    for (let found = LABEL.exec(line); found !== null; found = LABEL.exec(line)) {
      labels[found[1]] = unescaped(found[2]);
      at = LABEL.lastIndex;
    }
    at = line.indexOf("}", at) + 1;
    if (at === 0) return undefined;
  }
  const value = Number(line.slice(at).trim().split(/\s+/, 1)[0]);
  return Number.isFinite(value) && line.slice(at).trim() !== "" ? { name, labels, value } : undefined;
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*/;
const LABEL = /\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?/gy;

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, (_, character: string) => (character === "n" ? "\n" : character));
}

function total(samples: readonly Sample[]): number {
  return sum(samples.map(({ value }) => value));
}

function sum(values: readonly number[]): number {
  return values.reduce((before, value) => before + (Number.isFinite(value) ? value : 0), 0);
}

function mean(samples: readonly Sample[]): number {
  return samples.length === 0 ? 0 : total(samples) / samples.length;
}
