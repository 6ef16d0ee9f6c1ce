import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";
import { WarmpathError } from "../../../core/errors.ts";
import { inputProblem } from "../../input-problem.ts";

/** The part of TensorRT-LLM's own configuration that a simulated engine knows, as its YAML and JSON spell it. */
const argumentsSchema = z.strictObject({
  tensor_parallel_size: z.number().optional(),
  max_batch_size: z.number().optional(),
  max_num_tokens: z.number().optional(),
  max_seq_len: z.number().optional(),
  enable_chunked_prefill: z.boolean().optional(),
  disable_overlap_scheduler: z.boolean().optional(),
  kv_cache_config: z
    .strictObject({
      dtype: z.string().optional(),
      free_gpu_memory_fraction: z.number().optional(),
      enable_block_reuse: z.boolean().optional(),
      tokens_per_block: z.number().optional(),
      max_tokens: z.number().optional(),
      event_buffer_max_size: z.number().optional(),
    })
    .default({}),
  speculative_config: z
    .strictObject({
      decoding_type: z.string().optional(),
      speculative_model_dir: z.string().optional(),
      max_draft_len: z.number().optional(),
    })
    .default({}),
});

/** Reads `--extra-engine-args FILE`, YAML or JSON, as flags. */
export function engineArgumentsFile(path: string): Record<string, unknown> {
  let written: string;
  try {
    written = readFileSync(path, "utf8");
  } catch (error) {
    throw new WarmpathError("WP_INVALID_INPUT", `--extra-engine-args: cannot read ${path}`, { cause: error });
  }
  return engineFlags(written, path);
}

/** Reads `--override-engine-args JSON` as flags. */
export function engineArgumentsText(written: string): Record<string, unknown> {
  return engineFlags(written, "--override-engine-args");
}

function engineFlags(written: string, source: string): Record<string, unknown> {
  let input: unknown;
  try {
    // JSON is YAML.
    input = parse(written) ?? {};
  } catch (error) {
    throw new WarmpathError("WP_INVALID_INPUT", `${source} is neither YAML nor JSON`, { cause: error });
  }
  const { data, error } = argumentsSchema.safeParse(input);
  if (error !== undefined) throw inputProblem(error, input, source);
  const { kv_cache_config: kv, speculative_config: speculative, ...rest } = data;
  return defined({
    tensorParallelSize: rest.tensor_parallel_size,
    maxBatchSize: rest.max_batch_size,
    maxNumTokens: rest.max_num_tokens,
    maxSeqLen: rest.max_seq_len,
    enableChunkedPrefill: rest.enable_chunked_prefill,
    disableOverlapScheduler: rest.disable_overlap_scheduler,
    kvCacheDtype: kv.dtype,
    freeGpuMemoryFraction: kv.free_gpu_memory_fraction,
    enableBlockReuse: kv.enable_block_reuse,
    kvBlockSize: kv.tokens_per_block,
    kvPoolTokens: kv.max_tokens,
    eventBufferMaxSize: kv.event_buffer_max_size,
    speculativeModel: speculative.speculative_model_dir,
    numSpeculativeTokens: speculative.max_draft_len,
  });
}

function defined(flags: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined));
}
