/**
 * Field names of vLLM's and SGLang's KV events. Newer engines send maps with these keys, older ones arrays with the values in
 * this order (vLLM `vllm/distributed/kv_events.py`, SGLang `python/sglang/srt/disaggregation/kv_events.py`;
 * `engine-decoder.test.ts` pins both against msgspec's own encoding).
 */
import type { Tier } from "../../core/replica.ts";

export const FIELDS = [
  "type",
  "block_hashes",
  "parent_block_hash",
  "token_ids",
  "block_size",
  "lora_id",
  "medium",
  "lora_name",
  "extra_keys",
  "group_idx",
  "kv_cache_spec_kind",
  "kv_cache_spec_sliding_window",
  "locality",
  "cache_salt",
  "is_eagle",
] as const;

export type Field = (typeof FIELDS)[number];

/** Values of a stored event in an array, after the tag. */
export const STORED_ORDER: readonly Field[] = FIELDS.slice(1, 13);

/** Values of a removal in an array, after the tag. */
export const REMOVED_ORDER: readonly Field[] = ["block_hashes", "medium", "group_idx"];

/** Values of a clearing in an array, after the tag. */
export const CLEARED_ORDER: readonly Field[] = ["medium"];

/** Attention whose blocks are whole prefixes; windows, states and encoders of hybrid models are not. */
export const PREFIX_KINDS: ReadonlySet<string> = new Set(["full_attention", "mla_attention", "sink_full_attention"]);

const TIER_OF_MEDIUM: Readonly<Record<string, Tier>> = {
  GPU: "device",
  CPU: "host",
  CPU_PINNED: "host",
  CPU_TIER1: "host",
  CPU_TIER2: "host",
  DISK: "disk",
  SSD: "disk",
  NVME: "disk",
  STORAGE: "disk",
};

/** Where an engine says a block is; what is not known is taken for far away, which is worth least. */
export function tierOf(medium: string | undefined, locality: string | undefined): Tier {
  if (locality?.toUpperCase() === "REMOTE") return "remote";
  return medium === undefined ? "device" : (TIER_OF_MEDIUM[medium.toUpperCase()] ?? "remote");
}

/** vLLM's and SGLang's word for a tier. */
export const MEDIUM_OF_TIER: Readonly<Record<Tier, string>> = {
  device: "GPU",
  host: "CPU_PINNED",
  disk: "DISK",
  remote: "EXTERNAL",
};
