import type { BlockIdentity } from "../../core/hash.ts";
import type { KvChange } from "../../core/kv-index/types.ts";
import { MEDIUM_OF_TIER } from "./engine-fields.ts";
import { MsgpackWriter } from "./msgpack-writer.ts";

/** What a wire carries of stored blocks besides their hashes, so that subscribers can hash for themselves. */
export interface StoredContent {
  /** Token ids of all the blocks, one block after the other. */
  readonly tokens: Uint32Array;
  readonly identity?: BlockIdentity;
}

/** One change as an engine sends it. */
export interface EngineChange {
  readonly change: KvChange;
  /** Needed for stored blocks. */
  readonly content?: StoredContent | undefined;
}

export interface EngineBatchHead {
  readonly timestampSeconds: number;
  readonly dpRank: number;
  readonly blockTokens: number;
}

/** How events are written: `map` as vLLM does now (vllm-project/vllm#42892), `array` as it did before. */
export type EventShape = "map" | "array";

/** Encodes a batch of KV events as vLLM does. */
export function encodeEngineBatch(
  { timestampSeconds, dpRank, blockTokens }: EngineBatchHead,
  changes: readonly EngineChange[],
  shape: EventShape = "map",
): Uint8Array {
  const writer = new MsgpackWriter();
  writer.array(3);
  writer.float(timestampSeconds);
  writer.array(changes.length);
  for (const { change, content } of changes) {
    const event = new EventWriter(writer, shape);
    if (change.kind === "stored") writeStored(event, writer, change, content, blockTokens);
    else if (change.kind === "removed") writeRemoved(event, writer, change);
    else event.begin("AllBlocksCleared", 0);
  }
  writer.count(dpRank);
  return writer.finish();
}

/** Writes names before values, or not. */
class EventWriter {
  readonly #writer: MsgpackWriter;
  readonly #isMap: boolean;

  constructor(writer: MsgpackWriter, shape: EventShape) {
    this.#writer = writer;
    this.#isMap = shape === "map";
  }

  begin(kind: string, fields: number): void {
    if (this.#isMap) this.#writer.map(fields + 1);
    else this.#writer.array(fields + 1);
    this.name("type");
    this.#writer.text(kind);
  }

  get isMap(): boolean {
    return this.#isMap;
  }

  /** Announces the field whose value is written next. */
  name(field: string): void {
    if (this.#isMap) this.#writer.text(field);
  }
}

function writeStored(
  event: EventWriter,
  writer: MsgpackWriter,
  change: KvChange & { readonly kind: "stored" },
  content: StoredContent | undefined,
  blockTokens: number,
): void {
  const { loraName, cacheSalt } = content?.identity ?? {};
  // SGLang has a field for the salt; an array has only the place where vLLM puts it, with the first block of a prompt.
  const hasSalt = cacheSalt !== undefined && (event.isMap || change.parent === null);
  event.begin("BlockStored", hasSalt ? 8 : 7);
  event.name("block_hashes");
  writeHashes(writer, change.engine);
  event.name("parent_block_hash");
  if (change.parent === null) writer.nil();
  else writer.hash(change.parent[0], change.parent[1]);
  event.name("token_ids");
  const tokens = content?.tokens ?? new Uint32Array(0);
  writer.array(tokens.length);
  for (const token of tokens) writer.count(token);
  event.name("block_size");
  writer.count(blockTokens);
  event.name("lora_id");
  writer.nil();
  event.name("medium");
  writer.text(MEDIUM_OF_TIER[change.tier]);
  event.name("lora_name");
  writeOptionalText(writer, loraName);
  if (!hasSalt) return;
  event.name("cache_salt");
  if (event.isMap) writer.text(cacheSalt);
  else writeExtraKeys(writer, cacheSalt, change.engine.length / 2);
}

function writeExtraKeys(writer: MsgpackWriter, firstKey: string, blocks: number): void {
  writer.array(blocks);
  writer.array(1);
  writer.text(firstKey);
  for (let block = 1; block < blocks; block++) writer.nil();
}

function writeRemoved(
  event: EventWriter,
  writer: MsgpackWriter,
  change: KvChange & { readonly kind: "removed" },
): void {
  event.begin("BlockRemoved", 2);
  event.name("block_hashes");
  writeHashes(writer, change.engine);
  event.name("medium");
  writer.text(MEDIUM_OF_TIER[change.tier]);
}

function writeHashes(writer: MsgpackWriter, hashes: Uint32Array): void {
  writer.array(hashes.length / 2);
  for (let i = 0; i < hashes.length; i += 2) writer.hash(hashes[i], hashes[i + 1]);
}

function writeOptionalText(writer: MsgpackWriter, text: string | undefined): void {
  if (text === undefined) writer.nil();
  else writer.text(text);
}
