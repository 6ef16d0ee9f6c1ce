import { addMultimodalKeys, hashBlocks, hashSeed, NO_IDENTITY, type MultimodalKey } from "../../core/hash.ts";
import type { KvChange } from "../../core/kv-index/types.ts";
import type { Tier } from "../../core/replica.ts";

/** One event of TensorRT-LLM's as it is understood. */
export interface TensorRtEvent {
  readonly eventId: number;
  /** None where nothing changed for us: blocks that are not full, priorities, another attention window. */
  readonly changes: readonly KvChange[];
}

/** What one answer holds. Events that cannot be read are left out, so that their numbers are missed. */
export interface TensorRtAnswer {
  readonly events: readonly TensorRtEvent[];
  readonly undecodable: number;
  /** Events left out on purpose: blocks that are not full or of another size, windows that are not the largest. */
  readonly ignored: number;
}

interface Block {
  readonly hash: Uint32Array;
  readonly tokens: readonly number[];
  readonly tier: Tier;
  readonly loraName: string | undefined;
  readonly cacheSalt: string | undefined;
  readonly keys: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

/** Whole numbers of so many digits may be more than a JavaScript number holds exactly. */
const LONG_DIGITS = 16;
const TIER_OF_LEVEL: readonly Tier[] = ["device", "host"];

/**
 * Decodes what `POST /kv_cache_events` of trtllm-serve answers: a JSON array of events, in the shape of TensorRT-LLM's
 * `KVCacheEventSerializer`. Its hashes are 64-bit integers, which are kept exact. It also tells of blocks that are not full yet,
 * and of every window of models with several; only full blocks of the largest window are prefixes that can be found.
 */
export class TensorRtDecoder {
  readonly #blockTokens: number;
  readonly #dpRank: number;
  /** Removals do not say from where; only tiers that were ever used can be meant. */
  readonly #tiers = new Set<Tier>(["device"]);
  #window = 0;

  constructor(options: { readonly blockTokens: number; readonly dpRank?: number }) {
    this.#blockTokens = options.blockTokens;
    this.#dpRank = options.dpRank ?? 0;
  }

  /** The events in this text, without those of other ranks; undefined if it is not a list of events. */
  decode(text: string): TensorRtAnswer | undefined {
    const values = exactJson(text);
    if (!Array.isArray(values)) return undefined;
    const events: TensorRtEvent[] = [];
    let undecodable = 0;
    let ignored = 0;
    for (const value of values) {
      const fields = fieldsOf(value);
      if (fields !== undefined && (fields["attention_dp_rank"] ?? 0) !== this.#dpRank) continue;
      const eventId = fields?.["event_id"];
      const changes = fields === undefined || !isCount(eventId) ? undefined : this.#changes(fields);
      if (changes === undefined) undecodable++;
      else if (changes === "ignored") ignored++;
      if (changes !== undefined)
        events.push({ eventId: eventId as number, changes: changes === "ignored" ? [] : changes });
    }
    return { events, undecodable, ignored };
  }

  #isOfLargestWindow(window: unknown): boolean {
    if (!isCount(window)) return true;
    this.#window = Math.max(this.#window, window);
    return window === this.#window;
  }

  #changes(fields: Fields): KvChange[] | "ignored" | undefined {
    const data = fieldsOf(fields["data"]);
    if (data === undefined) return undefined;
    if (!this.#isOfLargestWindow(fields["window_size"])) return "ignored";
    switch (data["type"]) {
      case "stored":
        return this.#stored(data);
      case "removed": {
        const engine = hashesOf(data["block_hashes"]);
        return engine && [...this.#tiers].map((tier) => ({ kind: "removed", tier, engine }));
      }
      case "created":
      // A block that moves to the host's memory is still found, and is back sooner than it is computed.
      case "updated":
        return [];
      default:
        return undefined;
    }
  }

  #stored(data: Fields): KvChange[] | "ignored" | undefined {
    const { parent_hash: parentHash, blocks: listed } = data;
    const parent = parentHash === null || parentHash === undefined ? null : hashOf(parentHash);
    if (parent === undefined || !Array.isArray(listed)) return undefined;
    const blocks = listed.map((block) => blockOf(fieldsOf(block)));
    if (!blocks.every((block) => block !== undefined)) return undefined;
    const partial = blocks.findIndex(({ tokens }) => tokens.length !== this.#blockTokens);
    // Only the last block of a sequence can be short of tokens; any other is of another size.
    const isOtherSize =
      partial >= 0 && (partial < blocks.length - 1 || blocks[partial].tokens.length > this.#blockTokens);
    if (isOtherSize) return "ignored";
    const full = partial < 0 ? blocks : blocks.slice(0, partial);
    return full.length === 0 ? "ignored" : this.#runs(parent, full);
  }

  /** Consecutive blocks of the same tier and identity are one change. */
  #runs(parent: Uint32Array | null, blocks: readonly Block[]): KvChange[] {
    const changes: KvChange[] = [];
    let before = parent;
    for (let from = 0, to = 1; from < blocks.length; from = to, to++) {
      const first = blocks[from];
      while (to < blocks.length && isAlike(blocks[to], first)) to++;
      const run = blocks.slice(from, to);
      this.#tiers.add(first.tier);
      const engine = concatenated(run.map(({ hash }) => hash));
      changes.push({ kind: "stored", parent: before, engine, local: this.#local(run), tier: first.tier });
      before = engine.slice(-2);
    }
    return changes;
  }

  #local(blocks: readonly Block[]): Uint32Array {
    const [{ loraName, cacheSalt }] = blocks;
    const local = new Uint32Array(2 * blocks.length);
    const tokens = Uint32Array.from(blocks.flatMap((block) => block.tokens));
    const identity = { ...(loraName !== undefined && { loraName }), ...(cacheSalt !== undefined && { cacheSalt }) };
    const seed = loraName === undefined && cacheSalt === undefined ? NO_IDENTITY : hashSeed(identity);
    hashBlocks(tokens, tokens.length, this.#blockTokens, seed, local);
    const keys: MultimodalKey[] = blocks.flatMap((block, at) => block.keys.map((key) => ({ block: at, key })));
    addMultimodalKeys(local, keys);
    return local;
  }
}

function blockOf(fields: Fields | undefined): Block | undefined {
  const hash = hashOf(fields?.["block_hash"]);
  const { tokens: listed, cache_level: level = 0, lora_id: lora, cache_salt: salt, mm_keys: media } = fields ?? {};
  if (hash === undefined || !Array.isArray(listed) || !isCount(level)) return undefined;
  const tokens: number[] = [];
  const keys = Array.isArray(media) ? media.map(mediaKey) : [];
  for (const token of listed) {
    const { token_id: id, token_extra_id: extra } = fieldsOf(token) ?? {};
    if (!isCount(id)) return undefined;
    tokens.push(id);
    // Older engines tell images by this alone.
    if (keys.length === 0 && extra !== undefined && extra !== 0) keys.push(extraKey(extra));
  }
  if (!keys.every((key) => key !== undefined)) return undefined;
  return {
    hash,
    tokens,
    tier: TIER_OF_LEVEL[level] ?? "remote",
    loraName: isCount(lora) ? `${lora}` : undefined,
    cacheSalt: typeof salt === "string" ? salt : undefined,
    keys,
  };
}

function mediaKey(value: unknown): string | undefined {
  const hash = fieldsOf(value)?.["hash"];
  return typeof hash === "string" ? hash : written(value);
}

function isAlike(one: Block, other: Block): boolean {
  return one.tier === other.tier && one.loraName === other.loraName && one.cacheSalt === other.cacheSalt;
}

function concatenated(hashes: readonly Uint32Array[]): Uint32Array {
  return Uint32Array.from(hashes.flatMap((hash) => [...hash]));
}

function hashesOf(value: unknown): Uint32Array | undefined {
  if (!Array.isArray(value)) return undefined;
  const hashes = value.map(hashOf);
  return hashes.every((hash) => hash !== undefined) ? concatenated(hashes) : undefined;
}

/** A 64-bit integer, signed or not, as two lanes. */
function hashOf(value: unknown): Uint32Array | undefined {
  const isWhole = typeof value === "string" ? /^-?\d{1,20}$/.test(value) : Number.isSafeInteger(value);
  if (!isWhole) return undefined;
  const hash = BigInt.asUintN(64, BigInt(value as string | number));
  return Uint32Array.of(Number(hash & 0xffff_ffffn), Number(hash >> 32n));
}

/** The value of a JSON text in which numbers that would be rounded are texts. */
function exactJson(text: string): unknown {
  try {
    return JSON.parse(withLongNumbersQuoted(text)) as unknown;
  } catch {
    return undefined;
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const NUMBER = /\d+([.eE][\d.eE+-]*)?/y;

/** One pass and no pattern for strings: what an engine sends may be of any length, and may end in the middle of one. */
function withLongNumbersQuoted(text: string): string {
  let exact = "";
  let done = 0;
  for (let at = 0; at < text.length;) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) at = stringEnd(text, at + 1);
    else if (!isDigit(unit)) at++;
    else {
      NUMBER.lastIndex = at;
      const [, fraction] = NUMBER.exec(text) ?? [];
      const end = NUMBER.lastIndex;
      if (fraction === undefined && end - at >= LONG_DIGITS) {
        const from = text[at - 1] === "-" ? at - 1 : at;
        exact += `${text.slice(done, from)}"${text.slice(from, end)}"`;
        done = end;
      }
      at = end;
    }
  }
  return done === 0 ? text : exact + text.slice(done);
}

/** Behind the quote that ends the string whose content begins at `at`. */
function stringEnd(text: string, at: number): number {
  let end = at;
  for (let unit = text.charCodeAt(end); end < text.length && unit !== QUOTE; unit = text.charCodeAt(end)) {
    end += unit === BACKSLASH ? 2 : 1;
  }
  return end + 1;
}

function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39;
}

function extraKey(extra: unknown): string | undefined {
  const text = written(extra);
  return text === undefined ? undefined : `extra ${text}`;
}

/** A value as text; undefined for one that is nested beyond all reason. */
function written(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null ? (value as Fields) : undefined;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
