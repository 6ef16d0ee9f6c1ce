import type { FleetConfig } from "../../../lab/experiment/types.ts";

/** The command line of `warmpath worker` for one worker of an experiment's fleet. */
export function workerWords(fleet: FleetConfig): string[] {
  const { engine, speculation } = fleet;
  return [
    "worker",
    "--json",
    ...flag("--model-path", fleet.model),
    ...flag("--engine", engine.profile),
    ...flag("--gpu", fleet.gpu),
    ...flag("--tensor-parallel-size", fleet.tensorParallel),
    ...flag("--quantization", fleet.weights),
    ...flag("--kv-cache-dtype", fleet.kv),
    ...flag("--kv-block-size", fleet.blockTokens),
    ...flag("--free-gpu-memory-fraction", fleet.memoryFraction),
    ...flag("--kv-pool-tokens", fleet.kvPoolTokens),
    ...flag("--max-batch-size", engine.maxSequences),
    ...flag("--max-num-tokens", engine.maxTokensPerStep),
    engine.chunkedPrefill ? "--enable-chunked-prefill" : "--no-enable-chunked-prefill",
    engine.prefixReuse ? "--enable-block-reuse" : "--no-enable-block-reuse",
    ...(speculation === undefined
      ? []
      : [
          ...flag("--speculative-model", `${speculation.model}${speculation.weights === "fp8" ? "-FP8" : ""}`),
          ...flag("--num-speculative-tokens", speculation.drafts),
          ...flag("--speculative-acceptance", speculation.acceptanceMean),
          ...flag("--speculative-acceptance-deviation", speculation.acceptanceDeviation),
        ]),
  ];
}

function flag(name: string, value: string | number | undefined): string[] {
  return value === undefined ? [] : [name, String(value)];
}
