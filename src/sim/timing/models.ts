/** How a number is stored: weights, activations of linear layers, or the KV cache. */
export type NumberFormat = "bf16" | "fp8";

/** The shape of a dense decoder, as its public configuration file gives it. */
export interface ModelShape {
  readonly name: string;
  readonly layers: number;
  readonly hidden: number;
  readonly queryHeads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly feedForward: number;
  readonly vocabulary: number;
  readonly parameterCount: number;
}

/** The models whose timing is known; shapes are those of the public config.json of each. */
export const MODELS: readonly ModelShape[] = [
  shape("llama-3.1-8b", 32, 4096, 32, 14336, 128256, 8.03e9),
  shape("llama-3.1-70b", 80, 8192, 64, 28672, 128256, 70.55e9),
  shape("qwen3-8b", 36, 4096, 32, 12288, 151936, 8.19e9),
  shape("qwen3-32b", 64, 5120, 64, 25600, 151936, 32.76e9),
];

function shape(
  name: string,
  layers: number,
  hidden: number,
  queryHeads: number,
  feedForward: number,
  vocabulary: number,
  parameterCount: number,
): ModelShape {
  return { name, layers, hidden, queryHeads, kvHeads: 8, headDim: 128, feedForward, vocabulary, parameterCount };
}

/** Bytes of one stored number. */
export function bytesOf(format: NumberFormat): number {
  return format === "fp8" ? 1 : 2;
}

/** Parameters of the linear layers of all decoder blocks, which every token passes through. */
export function linearParameters(model: ModelShape): number {
  const attention = (2 * model.queryHeads + 2 * model.kvHeads) * model.headDim * model.hidden;
  return model.layers * (attention + 3 * model.hidden * model.feedForward);
}

/** KV cache bytes of one token over all layers, before it is divided among GPUs. */
export function kvBytesPerToken(model: ModelShape, kv: NumberFormat): number {
  return 2 * model.layers * model.kvHeads * model.headDim * bytesOf(kv);
}

/** KV cache bytes of one token on one GPU: the cache is split by KV heads, and copied once the GPUs outnumber them. */
export function kvBytesPerTokenPerGpu(model: ModelShape, kv: NumberFormat, tensorParallel: number): number {
  return kvBytesPerToken(model, kv) / Math.min(tensorParallel, model.kvHeads);
}

/** Finds a model by its name or by a hub path such as `meta-llama/Llama-3.1-8B-Instruct`. */
export function findModel(name: string): ModelShape | undefined {
  const last = name.toLowerCase().split("/").at(-1) ?? "";
  return MODELS.find((model) => last === model.name || last.startsWith(`${model.name}-`));
}
