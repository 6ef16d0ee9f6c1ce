import { Counter, Gauge, type Registry } from "prom-client";
import type { EngineStats } from "../../sim/engine/engine-stats.ts";
import type { EngineLoad } from "../twin-engine.ts";

/** The engine as far as it is measured. */
export interface MeasuredEngine {
  readonly load: EngineLoad;
  readonly stats: EngineStats;
}

/** How the cache is configured, as vLLM tells it in the labels of a constant. */
export interface CacheConfig {
  readonly blockTokens: number;
  readonly poolBlocks: number;
  readonly cacheDtype: string;
  readonly memoryFraction: number;
  readonly prefixReuse: boolean;
}

/** Counts and gauges of the engine under vLLM's names, read when somebody asks. */
export function registerEngineMetrics(registry: Registry, engine: MeasuredEngine, cache: CacheConfig): void {
  const gauge = (name: string, help: string, value: () => number): void => {
    void new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(value());
      },
    });
  };
  const counter = (name: string, help: string, value: () => number): void => {
    void new Counter({
      name,
      help,
      registers: [registry],
      collect() {
        this.reset();
        this.inc(value());
      },
    });
  };
  const usage = (): number => engine.load.heldBlocks / engine.load.poolBlocks;
  gauge("vllm:num_requests_running", "Requests in the batch.", () => engine.load.running);
  gauge("vllm:num_requests_waiting", "Requests waiting for a place in the batch.", () => engine.load.waiting);
  gauge("vllm:kv_cache_usage_perc", "Share of the KV cache that requests hold; 1 is all of it.", usage);
  gauge("vllm:gpu_cache_usage_perc", "The same under the name older versions give it.", usage);
  counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the cache.", () => engine.stats.promptTokens);
  counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the cache.", () => engine.stats.cachedTokens);
  counter("vllm:prompt_tokens_cached_total", "The same by its newer name.", () => engine.stats.cachedTokens);
  counter("vllm:prompt_tokens_total", "Prompt tokens of admitted requests.", () => engine.stats.promptTokens);
  counter("vllm:generation_tokens_total", "Tokens generated.", () => engine.stats.outputTokens);
  counter("vllm:num_preemptions_total", "Requests that lost their place.", () => engine.stats.preemptions);
  const accepted = (): number => Math.round(engine.stats.acceptanceRate * engine.stats.proposedDrafts);
  counter("vllm:spec_decode_num_draft_tokens_total", "Tokens drafted.", () => engine.stats.proposedDrafts);
  counter("vllm:spec_decode_num_accepted_tokens_total", "Drafted tokens that were accepted.", accepted);
  counter("warmpath_engine_steps_total", "Steps that the engine has run.", () => engine.stats.steps);
  counter("warmpath_engine_evicted_blocks_total", "KV blocks given up.", () => engine.stats.evictedBlocks);
  new Gauge({
    name: "vllm:cache_config_info",
    help: "How the KV cache is configured, in its labels.",
    labelNames: ["block_size", "num_gpu_blocks", "cache_dtype", "gpu_memory_utilization", "enable_prefix_caching"],
    registers: [registry],
  }).set(
    {
      block_size: cache.blockTokens,
      num_gpu_blocks: cache.poolBlocks,
      cache_dtype: cache.cacheDtype,
      gpu_memory_utilization: cache.memoryFraction,
      enable_prefix_caching: cache.prefixReuse ? "True" : "False",
    },
    1,
  );
}
