import { describe, expect, test } from "vitest";
import { engineLoadOf, parseSamples } from "./prometheus-text.ts";

const VLLM = `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="Qwen/Qwen3-8B"} 12.0
vllm:num_requests_running{engine="1",model_name="Qwen/Qwen3-8B"} 4.0
vllm:num_requests_waiting{engine="0",model_name="Qwen/Qwen3-8B"} 3.0
vllm:num_requests_waiting{engine="1",model_name="Qwen/Qwen3-8B"} 0.0
vllm:kv_cache_usage_perc{engine="0",model_name="Qwen/Qwen3-8B"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="Qwen/Qwen3-8B"} 0.25
vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",num_gpu_blocks="27000"} 1.0
vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="1",num_gpu_blocks="27000"} 1.0
vllm:time_to_first_token_seconds_bucket{le="0.001",model_name="Qwen/Qwen3-8B"} 0.0
`;

const SGLANG = `sglang:num_running_reqs{model_name="llama",tp_rank="0"} 162.0
sglang:num_queue_reqs{model_name="llama",tp_rank="0"} 2826.0
sglang:token_usage{model_name="llama",tp_rank="0"} 2.8e-01
sglang:max_total_num_tokens{model_name="llama"} 161721.0
sglang:page_size{model_name="llama"} 16
sglang:max_running_requests{model_name="llama"} 256
`;

describe("an engine's load in its metrics", () => {
  test("is read by vLLM's names, added over its ranks", () => {
    expect(engineLoadOf(VLLM)).toEqual({ running: 16, waiting: 3, kvUsage: 0.375, kvBlocks: 54_000, blockTokens: 16 });
  });

  test("is read for one rank", () => {
    expect(engineLoadOf(VLLM, 1)).toEqual({ running: 4, waiting: 0, kvUsage: 0.25, kvBlocks: 27_000, blockTokens: 16 });
  });

  test("is read under the name that older vLLMs have for the KV usage", () => {
    const older = VLLM.replaceAll("kv_cache_usage", "gpu_cache_usage").replaceAll('"27000"', '"None"');
    expect(engineLoadOf(older, 0)).toEqual({ running: 12, waiting: 3, kvUsage: 0.5 });
  });

  test("is read by SGLang's names", () => {
    const load = { running: 162, waiting: 2826, kvUsage: 0.28, batchSlots: 256, kvBlocks: 10_107, blockTokens: 16 };
    expect(engineLoadOf(SGLANG)).toEqual(load);
  });

  test("is unknown where the metrics are somebody else's", () => {
    expect(engineLoadOf("process_cpu_seconds_total 1\n")).toBeUndefined();
    expect(engineLoadOf("")).toBeUndefined();
  });
});

test("samples have labels with escapes and values with times; what cannot be read is passed over", () => {
  const text = ['a{x="1, \\"2\\" }\\n",y="b\\\\c",} 4.5 1700000000', "a 1e3", "a", 'a{x="1" 3', "a{} NaN", "b 1"].join(
    "\n",
  );
  expect(parseSamples(text, new Set(["a"]))).toEqual([
    { name: "a", labels: { x: '1, "2" }\n', y: "b\\c" }, value: 4.5 },
    { name: "a", labels: {}, value: 1000 },
  ]);
});
