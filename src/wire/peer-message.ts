/**
 * What gateways tell each other, as bytes: a length, JSON, and the hashes of all prompts in it behind that, since in JSON they
 * would be most of a message. Decoders answer with what is wrong instead of throwing.
 */
import type { PeerNews } from "../core/peer-books.ts";

/** One message of one gateway. Those of one gateway arrive in the order in which they were sent, or not at all. */
export interface PeerMessage {
  /** Name of the gateway; another one after every start. */
  readonly from: string;
  /** Tokens in the blocks that hashes stand for: those of another size mean nothing here. */
  readonly blockTokens: number;
  /**
   * `news` tells what has just happened, `known` repeats it for one who came late, `alive` names all that is under way, `hello`
   * asks everybody for what they have, and `leaving` is the last.
   */
  readonly kind: "news" | "known" | "alive" | "hello" | "leaving";
  readonly news: readonly PeerNews[];
  /** Requests under way, where the message names them. */
  readonly open: readonly string[];
}

export type DecodedPeerMessage =
  | { readonly message: PeerMessage; readonly problem?: undefined }
  | { readonly message?: undefined; readonly problem: "malformed" | "other-version" };

/** Gateways of another version are not understood; a change of anything below is another version. */
const VERSION = 2;
const KINDS: ReadonlySet<unknown> = new Set<PeerMessage["kind"]>(["news", "known", "alive", "hello", "leaving"]);
/** Of longer prompts the beginning is told: it is what others can share. */
const MOST_BLOCKS = 8192;
const LENGTH_BYTES = 4;
const BLOCK_BYTES = 8;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

export function encodePeerMessage({ from, blockTokens, kind, news, open }: PeerMessage): Uint8Array {
  const json = encoder.encode(
    JSON.stringify({ version: VERSION, from, blockTokens, kind, open, news: news.map(written) }),
  );
  const sequences = news.flatMap((one) => hashesOf(one) ?? []);
  const hashBytes = sequences.reduce((sum, sequence) => sum + 4 * sequence.length, 0);
  const bytes = new Uint8Array(LENGTH_BYTES + json.length + hashBytes);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, json.length, true);
  bytes.set(json, LENGTH_BYTES);
  let at = LENGTH_BYTES + json.length;
  for (const sequence of sequences) {
    for (const lane of sequence) {
      view.setUint32(at, lane, true);
      at += 4;
    }
  }
  return bytes;
}

export function decodePeerMessage(bytes: Uint8Array): DecodedPeerMessage {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < LENGTH_BYTES) return MALFORMED;
  const end = LENGTH_BYTES + view.getUint32(0, true);
  if (end > bytes.length) return MALFORMED;
  const fields = objectIn(bytes.subarray(LENGTH_BYTES, end));
  if (fields === undefined) return MALFORMED;
  const { version, from, blockTokens, kind, open, news } = fields;
  if (version !== VERSION) return { problem: "other-version" };
  if (!isName(from) || !isCount(blockTokens) || !KINDS.has(kind)) return MALFORMED;
  if (!Array.isArray(open) || !open.every(isName) || !Array.isArray(news)) return MALFORMED;
  const read = readNews(news, new HashReader(view, end));
  if (read === undefined) return MALFORMED;
  return { message: { from, blockTokens, kind: kind as PeerMessage["kind"], open, news: read } };
}

const MALFORMED = { problem: "malformed" } as const;

function written(news: PeerNews): readonly unknown[] {
  const { kind, request } = news;
  if (kind === "grew") return [kind, request, news.tokens];
  const hashes = hashesOf(news);
  if (hashes === undefined) return [kind, request];
  const blocks = hashes.length / 2;
  if (kind !== "placed") return [kind, request, blocks];
  const { replica, promptTokens, cachedTokens } = news;
  return [kind, request, replica, promptTokens, cachedTokens, blocks];
}

/** The hashes that are told with news, if any are. */
function hashesOf(news: PeerNews): Uint32Array | undefined {
  const all = news.kind === "placed" ? news.sequence : news.kind === "ended" ? news.kept : undefined;
  return all?.subarray(0, 2 * MOST_BLOCKS);
}

/** Undefined unless all of it can be read, and nothing is left over. */
function readNews(entries: readonly unknown[], hashes: HashReader): PeerNews[] | undefined {
  const news: PeerNews[] = [];
  for (const entry of entries) {
    const one = Array.isArray(entry) ? readOne(entry, hashes) : undefined;
    if (one === undefined) return undefined;
    news.push(one);
  }
  return hashes.isAtEnd ? news : undefined;
}

function readOne([kind, request, ...rest]: readonly unknown[], hashes: HashReader): PeerNews | undefined {
  if (!isName(request)) return undefined;
  if (kind === "first-token" || (kind === "ended" && rest.length === 0)) return { kind, request };
  if (kind === "grew") return isCount(rest[0]) ? { kind, request, tokens: rest[0] } : undefined;
  if (kind === "ended") {
    const kept = isCount(rest[0]) ? hashes.take(rest[0]) : undefined;
    return kept === undefined ? undefined : { kind, request, kept };
  }
  const [replica, promptTokens, cachedTokens, blocks] = rest;
  if (kind !== "placed" || !isName(replica) || !isCount(promptTokens)) return undefined;
  const sequence = isCount(blocks) ? hashes.take(blocks) : undefined;
  if (!isCount(cachedTokens) || cachedTokens > promptTokens || sequence === undefined) return undefined;
  return { kind, request, replica, promptTokens, cachedTokens, sequence };
}

class HashReader {
  readonly #view: DataView;
  #at: number;

  constructor(view: DataView, at: number) {
    this.#view = view;
    this.#at = at;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#view.byteLength;
  }

  take(blocks: number): Uint32Array | undefined {
    if (blocks > MOST_BLOCKS || this.#at + blocks * BLOCK_BYTES > this.#view.byteLength) return undefined;
    const sequence = new Uint32Array(2 * blocks);
    for (let i = 0; i < sequence.length; i++) sequence[i] = this.#view.getUint32(this.#at + 4 * i, true);
    this.#at += blocks * BLOCK_BYTES;
    return sequence;
  }
}

function objectIn(bytes: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = JSON.parse(decoder.decode(bytes)) as unknown;
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
