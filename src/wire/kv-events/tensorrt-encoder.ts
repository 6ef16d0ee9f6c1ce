import type { KvEvent } from "../../core/kv-index/types.ts";
import { textOfHashes } from "./hash-text.ts";

/** An event in the shape of TensorRT-LLM's; `tokens` are those of stored blocks. */
export function encodeTensorRtEvent(event: KvEvent, tokens: Uint32Array, blockTokens: number): string {
  return `{"event_id":${event.eventId},"data":${dataOf(event, tokens, blockTokens)},"window_size":${WINDOW}}`;
}

/** Models with one kind of attention have one window, as long as a sequence. */
const WINDOW = 131_072;

function dataOf(event: KvEvent, tokens: Uint32Array, blockTokens: number): string {
  // Nothing of TensorRT-LLM's says that all is gone; it does not happen while it runs.
  if (event.kind === "cleared") return '{"type":"removed","block_hashes":[]}';
  const hashes = decimals(event.engine);
  if (event.kind === "removed") return `{"type":"removed","block_hashes":[${hashes.join(",")}]}`;
  const parent = event.parent === null ? "null" : decimals(event.parent)[0];
  const blocks = hashes.map((hash, at) => blockOf(hash, tokens.subarray(at * blockTokens, (at + 1) * blockTokens)));
  return `{"type":"stored","parent_hash":${parent},"blocks":[${blocks.join(",")}]}`;
}

function blockOf(hash: string, tokens: Uint32Array): string {
  const listed = Array.from(tokens, (id) => `{"type":"unique_token","token_id":${id},"token_extra_id":0}`);
  return `{"type":"stored_block","block_hash":${hash},"tokens":[${listed.join(",")}],"cache_level":0,"priority":35}`;
}

function decimals(hashes: Uint32Array): string[] {
  const text = textOfHashes(hashes);
  return Array.from({ length: text.length / 16 }, (_, i) => BigInt(`0x${text.slice(16 * i, 16 * i + 16)}`).toString());
}
