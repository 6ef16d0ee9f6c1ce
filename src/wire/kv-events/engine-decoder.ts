import {
  addMultimodalKeys,
  hashBlocks,
  hashSeed,
  NO_IDENTITY,
  type HashSeed,
  type MultimodalKey,
} from "../../core/hash.ts";
import type { KvChange } from "../../core/kv-index/types.ts";
import {
  CLEARED_ORDER,
  FIELDS,
  PREFIX_KINDS,
  REMOVED_ORDER,
  STORED_ORDER,
  tierOf,
  type Field,
} from "./engine-fields.ts";
import { MsgpackReader } from "./msgpack-reader.ts";

/** One message of an engine: what changed in its cache during a step. */
export interface EngineBatch {
  /** The engine's own wall clock. */
  readonly timestampSeconds: number;
  readonly dpRank: number | undefined;
  readonly changes: readonly KvChange[];
  /** Events that are not as they should be, or of a kind that nobody knows; the others are good. */
  readonly undecodable: number;
  /** Events left out on purpose: other block sizes, attention groups that are not prefixes. */
  readonly ignored: number;
  /** A block size other than ours that was found. */
  readonly otherBlockTokens?: number;
}

const UTF8 = new TextEncoder();
const FIELD_NAMES: readonly Uint8Array[] = FIELDS.map((name) => UTF8.encode(name));
/** In the order in which a batch that is an array has them. */
const BATCH_FIELDS = ["ts", "events", "data_parallel_rank"] as const;
const BATCH_NAMES: readonly Uint8Array[] = BATCH_FIELDS.map((name) => UTF8.encode(name));
const EVENT_KINDS = ["BlockStored", "BlockRemoved", "AllBlocksCleared"] as const;
const EVENT_NAMES: readonly Uint8Array[] = EVENT_KINDS.map((name) => UTF8.encode(name));
const ORDERS: readonly (readonly Field[])[] = [STORED_ORDER, REMOVED_ORDER, CLEARED_ORDER];

const AT: Readonly<Record<Field, number>> = Object.fromEntries(FIELDS.map((name, i) => [name, i])) as Record<
  Field,
  number
>;
const ABSENT = -1;

interface MutableBatch extends EngineBatch {
  timestampSeconds: number;
  dpRank: number | undefined;
  changes: KvChange[];
  undecodable: number;
  ignored: number;
  otherBlockTokens?: number;
}

type Outcome = KvChange | "undecodable" | "ignored";

/**
 * Decodes the batches of one vLLM or SGLang engine, in every shape they have had: events as maps or as arrays, batches
 * likewise, hashes as integers or bytes. Fields that are not known are passed over. Local hashes are computed from the token
 * ids, so that they equal those of a prompt.
 */
export class EngineDecoder {
  readonly #blockTokens: number;
  readonly #reader = new MsgpackReader();
  /** Where each field's value starts in the event at hand. */
  readonly #starts = new Int32Array(FIELDS.length);
  /** Groups of blocks that are no prefixes; removals name only the group. */
  readonly #ignoredGroups = new Set<number>();
  /** Token ids of the event at hand; the first `#tokenCount` count. */
  #tokens: Uint32Array = new Uint32Array(1024);
  #tokenCount = 0;
  #otherBlockTokens: number | undefined;

  constructor(blockTokens: number) {
    this.#blockTokens = blockTokens;
  }

  /** The batch in these bytes; undefined if they are not one. */
  decode(payload: Uint8Array): EngineBatch | undefined {
    const reader = this.#reader;
    reader.open(payload);
    const batch: MutableBatch = { timestampSeconds: 0, dpRank: undefined, changes: [], undecodable: 0, ignored: 0 };
    this.#otherBlockTokens = undefined;
    const isMap = reader.isAtMap;
    const fields = isMap ? reader.readMap() : reader.readArray();
    let hasEvents = false;
    for (let i = 0; i < fields && !reader.hasFailed; i++) {
      const field = !isMap ? i : reader.isAtText ? reader.readName(BATCH_NAMES) : this.#skipped();
      if (BATCH_FIELDS[field] === "ts") batch.timestampSeconds = reader.readNumber();
      else if (BATCH_FIELDS[field] === "events") {
        this.#events(batch);
        hasEvents = true;
      } else if (BATCH_FIELDS[field] === "data_parallel_rank") {
        batch.dpRank = reader.takeNil() ? undefined : reader.readCount();
      } else reader.skip();
    }
    if (this.#otherBlockTokens !== undefined) batch.otherBlockTokens = this.#otherBlockTokens;
    return hasEvents && !reader.hasFailed && reader.isAtEnd ? batch : undefined;
  }

  #events(batch: MutableBatch): void {
    const reader = this.#reader;
    const count = reader.readArray();
    for (let i = 0; i < count && !reader.hasFailed; i++) {
      const outcome = this.#event();
      if (outcome === "undecodable") batch.undecodable++;
      else if (outcome === "ignored") batch.ignored++;
      else batch.changes.push(outcome);
    }
  }

  /** Decodes the event here and stops after it, whatever is wrong with its values; only its shape must be sound. */
  #event(): Outcome {
    const reader = this.#reader;
    const kind = reader.isAtMap ? this.#eventMap() : this.#eventArray();
    if (reader.hasFailed) return "undecodable";
    const end = reader.at;
    const outcome = this.#change(kind);
    const isWhole = !reader.hasFailed;
    reader.hasFailed = false;
    reader.at = end;
    return isWhole ? outcome : "undecodable";
  }

  #change(kind: number): Outcome {
    switch (EVENT_KINDS[kind]) {
      case "BlockStored":
        return this.#stored();
      case "BlockRemoved":
        return this.#isOfIgnoredGroup()
          ? "ignored"
          : { kind: "removed", engine: this.#hashes("block_hashes"), tier: this.#tier() };
      case "AllBlocksCleared":
        return { kind: "cleared", tier: this.#tier() };
      default:
        return "undecodable";
    }
  }

  #eventMap(): number {
    const reader = this.#reader;
    this.#forgetEvent();
    const entries = reader.readMap();
    for (let i = 0; i < entries && !reader.hasFailed; i++) {
      this.#field(reader.isAtText ? reader.readName(FIELD_NAMES) : this.#skipped());
    }
    const start = this.#starts[AT.type];
    if (start === ABSENT || reader.hasFailed) return ABSENT;
    const end = reader.at;
    reader.at = start;
    const kind = reader.isAtText ? reader.readName(EVENT_NAMES) : ABSENT;
    reader.at = end;
    return kind;
  }

  #eventArray(): number {
    const reader = this.#reader;
    this.#forgetEvent();
    if (!reader.isAtArray) {
      reader.skip();
      return ABSENT;
    }
    const length = reader.readArray();
    if (length === 0) return ABSENT;
    const kind = reader.isAtText ? reader.readName(EVENT_NAMES) : this.#skipped();
    const order = ORDERS[kind] ?? [];
    let place = 0;
    for (let i = 1; i < length && !reader.hasFailed; i++) {
      // Some publishers put a list about images where the group comes.
      const isForeign = order[place] === "group_idx" && reader.isAtArray;
      this.#field(isForeign || place >= order.length ? ABSENT : AT[order[place++]]);
    }
    return kind;
  }

  /** Notes where a field's value starts and passes over it; token ids, which are most of an event, are read on the way. */
  #field(field: number): void {
    const reader = this.#reader;
    const start = reader.at;
    if (field >= 0) this.#starts[field] = start;
    if (field === AT.token_ids && reader.isAtArray) {
      this.#tokens = reader.readCounts(this.#tokens);
      this.#tokenCount = reader.count;
      if (!reader.hasFailed) return;
      // Not token ids, or not a sound value at all; which of the two shows when it is passed over.
      reader.hasFailed = false;
      reader.at = start;
      this.#tokenCount = ABSENT;
    }
    reader.skip();
  }

  #forgetEvent(): void {
    this.#starts.fill(ABSENT);
    this.#tokenCount = 0;
  }

  #skipped(): number {
    this.#reader.skip();
    return ABSENT;
  }

  #stored(): Outcome {
    if (this.#isOfOtherAttention() || this.#isTrue("is_eagle")) return "ignored";
    const blockTokens = this.#count("block_size");
    const engine = this.#hashes("block_hashes");
    const tokens = this.#tokenCount;
    const blocks = engine.length / 2;
    if (this.#reader.hasFailed || tokens !== blocks * blockTokens) return "undecodable";
    if (blockTokens !== this.#blockTokens) {
      this.#otherBlockTokens = blockTokens;
      return "ignored";
    }
    const local = new Uint32Array(engine.length);
    const { seed, known } = this.#identity();
    hashBlocks(this.#tokens, tokens, blockTokens, seed, local);
    addMultimodalKeys(local, this.#extraKeys(known));
    return { kind: "stored", parent: this.#parent(), engine, local, tier: this.#tier() };
  }

  #parent(): Uint32Array | null {
    const reader = this.#reader;
    if (!this.#goTo("parent_block_hash") || reader.takeNil()) return null;
    reader.readHash();
    return Uint32Array.of(reader.lo, reader.hi);
  }

  #hashes(field: Field): Uint32Array {
    const reader = this.#reader;
    if (!this.#goTo(field)) {
      reader.hasFailed = true;
      return new Uint32Array(0);
    }
    const hashes = new Uint32Array(2 * reader.readArray());
    for (let i = 0; i < hashes.length && !reader.hasFailed; i += 2) {
      reader.readHash();
      hashes[i] = reader.lo;
      hashes[i + 1] = reader.hi;
    }
    return hashes;
  }

  /** The seed of the blocks' hashes, and the texts that it stands for. */
  #identity(): { seed: HashSeed; known: readonly string[] } {
    const loraName = this.#text("lora_name") ?? this.#loraNumber();
    const cacheSalt = this.#text("cache_salt");
    if (loraName === undefined && cacheSalt === undefined) return { seed: NO_IDENTITY, known: [] };
    const seed = hashSeed({
      ...(loraName !== undefined && { loraName }),
      ...(cacheSalt !== undefined && { cacheSalt }),
    });
    return { seed, known: [loraName, cacheSalt].filter((text) => text !== undefined) };
  }

  /** Engines before `lora_name` number their adapters. */
  #loraNumber(): string | undefined {
    const start = this.#starts[AT.lora_id];
    const number = start === ABSENT ? undefined : this.#optionalCount(start);
    return number === undefined ? undefined : `${number}`;
  }

  /**
   * What else the engine mixed into its hashes: images, a salt that it does not name. None of it can be told apart, but blocks
   * that have it must not be taken for blocks of the same tokens without.
   */
  #extraKeys(known: readonly string[]): MultimodalKey[] {
    const reader = this.#reader;
    if (!this.#goTo("extra_keys") || reader.takeNil()) return [];
    const keys: MultimodalKey[] = [];
    const blocks = reader.readArray();
    for (let block = 0; block < blocks && !reader.hasFailed; block++) {
      if (reader.takeNil()) continue;
      const count = reader.readArray();
      for (let i = 0; i < count && !reader.hasFailed; i++) {
        const key = reader.isAtText ? reader.readText() : latin1(reader.rawValue());
        if (!known.includes(key)) keys.push({ block, key });
      }
    }
    return keys;
  }

  /** Whether the blocks belong to attention that keeps no prefixes; its group is remembered for the removals. */
  #isOfOtherAttention(): boolean {
    const kind = this.#text("kv_cache_spec_kind");
    if (kind === undefined || PREFIX_KINDS.has(kind)) return false;
    const group = this.#group();
    if (group !== undefined) this.#ignoredGroups.add(group);
    return true;
  }

  #isOfIgnoredGroup(): boolean {
    if (this.#ignoredGroups.size === 0) return false;
    const group = this.#group();
    return group !== undefined && this.#ignoredGroups.has(group);
  }

  #group(): number | undefined {
    const start = this.#starts[AT.group_idx];
    return start === ABSENT ? undefined : this.#optionalCount(start);
  }

  #tier(): KvChange["tier"] {
    return tierOf(this.#text("medium"), this.#text("locality"));
  }

  #isTrue(field: Field): boolean {
    return this.#goTo(field) && this.#reader.rawValue()[0] === 0xc3;
  }

  #count(field: Field): number {
    return this.#goTo(field) ? this.#reader.readCount() : 0;
  }

  #text(field: Field): string | undefined {
    return this.#goTo(field) && !this.#reader.takeNil() ? this.#reader.readText() : undefined;
  }

  #optionalCount(start: number): number | undefined {
    const reader = this.#reader;
    reader.at = start;
    return reader.takeNil() ? undefined : reader.readCount();
  }

  #goTo(field: Field): boolean {
    const start = this.#starts[AT[field]];
    if (start !== ABSENT) this.#reader.at = start;
    return start !== ABSENT;
  }
}

function latin1(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
}
