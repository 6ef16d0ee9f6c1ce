import type { Accounting } from "../../core/accounts.ts";
import type { Continuation, KeptBlocks } from "../../core/open-request.ts";
import type { AttemptEnd, OfferedRequest, Readiness } from "../decider.ts";

/** Who a worker is and whether it may be given requests, as proxies remember it for when the decider is away. */
export interface KnownWorker {
  readonly name: string;
  readonly url: string;
  readonly dpRanks: number;
  readonly isReady: boolean;
}

/** What proxies are told of the fleet, and that the decider is alive. */
export interface FleetNews {
  readonly workers: readonly KnownWorker[];
  readonly models: readonly string[];
  readonly adapters: readonly string[];
  readonly readiness: Readiness;
}

/** What a proxy has done without the decider since it was started. */
export interface StandInReport {
  /** Another for each proxy, and the same on all of its connections. */
  readonly proxy: string;
  readonly accounting: Accounting;
}

const encoder = new TextEncoder();

/** An offer as bytes: the hashes as they are, the rest as JSON in front of them. */
export function encodeOffer(request: OfferedRequest): { head: Uint8Array; hashes: Uint8Array } {
  const { sequence, blocks, ...rest } = request;
  const json = encoder.encode(JSON.stringify({ ...rest, blocks }));
  const head = new Uint8Array(4 + json.length);
  new DataView(head.buffer).setUint32(0, json.length, true);
  head.set(json, 4);
  return { head, hashes: new Uint8Array(sequence.buffer, sequence.byteOffset, 8 * blocks) };
}

export function decodeOffer(payload: Buffer): OfferedRequest {
  const length = payload.readUInt32LE(0);
  const rest = JSON.parse(payload.toString("utf8", 4, 4 + length)) as Omit<OfferedRequest, "sequence">;
  // A copy, because the bytes are the socket's and need not lie where numbers may.
  const bytes = Uint8Array.from(payload.subarray(4 + length));
  return { ...rest, sequence: new Uint32Array(bytes.buffer) };
}

/** Why a proxy turned a request away, and for whose key. */
export function decodeRefusal(payload: Buffer): [reason: string, key?: string] {
  const { reason, key } = JSON.parse(payload.toString()) as { readonly reason: string; readonly key?: string };
  return key === undefined ? [reason] : [reason, key];
}

interface WrittenEnd extends Omit<AttemptEnd, "gaps" | "kept" | "continuation"> {
  readonly gaps?: { readonly counts: readonly number[]; readonly sumSeconds: number };
  readonly kept?: Omit<KeptBlocks, "sequence"> & { readonly sequence: string };
  readonly continuation?: Omit<Continuation, "sequence"> & { readonly sequence: string };
}

/** An end as JSON can carry it. */
export function writableEnd(end: AttemptEnd): object {
  const { gaps, kept, continuation, ...rest } = end;
  return {
    ...rest,
    ...(gaps !== undefined && { gaps: { counts: [...gaps.counts], sumSeconds: gaps.sumSeconds } }),
    ...(kept !== undefined && { kept: { ...kept, sequence: hashText(kept) } }),
    ...(continuation !== undefined && {
      continuation: { ...continuation, sequence: hashText(continuation) },
    }),
  };
}

export function decodeEnd(payload: Buffer): AttemptEnd {
  const { gaps, kept, continuation, ...rest } = JSON.parse(payload.toString()) as WrittenEnd;
  return {
    ...rest,
    ...(gaps !== undefined && { gaps: { counts: Uint32Array.from(gaps.counts), sumSeconds: gaps.sumSeconds } }),
    ...(kept !== undefined && { kept: { ...kept, sequence: hashesIn(kept.sequence) } }),
    ...(continuation !== undefined && {
      continuation: { ...continuation, sequence: hashesIn(continuation.sequence) },
    }),
  };
}

/** Hashes in a text: they come once in a request at most, so what JSON cannot carry may be written a third longer. */
function hashText({ sequence, blocks }: KeptBlocks): string {
  return Buffer.from(sequence.buffer, sequence.byteOffset, 8 * blocks).toString("base64");
}

function hashesIn(text: string): Uint32Array {
  return new Uint32Array(Uint8Array.from(Buffer.from(text, "base64")).buffer);
}
