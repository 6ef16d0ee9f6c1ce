/**
 * Our own workers' events as JSON: what they send over HTTP. Hashes are hex text, because JSON numbers would round them.
 * Decoders answer undefined to whatever is not as it should be.
 */
import type { KvChange, KvEvent, ReplicaSnapshot, SnapshotRun } from "../../core/kv-index/types.ts";
import type { ReportedLoad } from "../../core/load/load-description.ts";
import { TIERS, type Tier } from "../../core/replica.ts";
import { hashesOf, textOfHashes } from "./hash-text.ts";

/** How far a worker's stream is, told to whoever connects. */
export interface StreamHead {
  readonly incarnation: string;
  /** The last event so far; -1 before the first. */
  readonly lastEventId: number;
  /** The first event that this connection brings. */
  readonly nextEventId: number;
}

/** An event as it is streamed; one that is sent when it happens has the time, in milliseconds since 1970, on it. */
export interface StreamedEvent {
  readonly event: KvEvent;
  readonly sentMs: number | undefined;
}

export function encodeKvEvent(event: KvEvent, sentMs?: number): string {
  const { incarnation, eventId, more } = event;
  const rest = more === undefined ? {} : { more: more.map(plainChange) };
  return JSON.stringify({ incarnation, eventId, sentMs, ...plainChange(event), ...rest });
}

export function decodeKvEvent(text: string): KvEvent | undefined {
  return kvEventOf(parsed(text));
}

export function decodeStreamedEvent(text: string): StreamedEvent | undefined {
  const value = parsed(text);
  const event = kvEventOf(value);
  if (event === undefined) return undefined;
  const sentMs = objectOf(value)?.["sentMs"];
  return { event, sentMs: isAmount(sentMs) ? sentMs : undefined };
}

/** A range of events as one body. */
export function encodeKvEvents(events: readonly KvEvent[]): string {
  return `[${events.map((event) => encodeKvEvent(event)).join(",")}]`;
}

export function decodeKvEvents(text: string): KvEvent[] | undefined {
  const values = parsed(text);
  if (!Array.isArray(values)) return undefined;
  const events = values.map(kvEventOf);
  return events.every((event) => event !== undefined) ? events : undefined;
}

export function encodeSnapshot({ incarnation, lastEventId, runs }: ReplicaSnapshot): string {
  const plain = runs.map(({ tier, sequence, engine }) => ({
    tier,
    sequence: textOfHashes(sequence),
    engine: engine === null ? null : textOfHashes(engine),
  }));
  return JSON.stringify({ incarnation, lastEventId, runs: plain });
}

export function decodeSnapshot(text: string): ReplicaSnapshot | undefined {
  const value = objectOf(parsed(text));
  if (value === undefined || !Array.isArray(value["runs"])) return undefined;
  const { incarnation, lastEventId } = value;
  const runs = value["runs"].map(runOf);
  if (typeof incarnation !== "string" || !isId(lastEventId, -1)) return undefined;
  return runs.every((run) => run !== undefined) ? { incarnation, lastEventId, runs } : undefined;
}

export function encodeStreamHead(head: StreamHead): string {
  return JSON.stringify(head);
}

export function decodeStreamHead(text: string): StreamHead | undefined {
  const value = objectOf(parsed(text));
  if (value === undefined) return undefined;
  const { incarnation, lastEventId, nextEventId } = value;
  if (typeof incarnation !== "string" || !isId(lastEventId, -1) || !isId(nextEventId, 0)) return undefined;
  return { incarnation, lastEventId, nextEventId };
}

export function encodeLoad(load: ReportedLoad): string {
  return JSON.stringify(load);
}

export function decodeLoad(text: string): ReportedLoad | undefined {
  const value = objectOf(parsed(text));
  if (value === undefined) return undefined;
  const { running, waiting, kvUsage, batchSlots, kvBlocks } = value;
  if (!isAmount(running) || !isAmount(waiting) || !isAmount(kvUsage)) return undefined;
  return {
    running,
    waiting,
    kvUsage,
    ...(isAmount(batchSlots) && { batchSlots }),
    ...(isAmount(kvBlocks) && { kvBlocks }),
  };
}

function plainChange(change: KvChange): Record<string, unknown> {
  const { kind, tier } = change;
  if (kind === "cleared") return { kind, tier };
  const engine = textOfHashes(change.engine);
  if (kind === "removed") return { kind, tier, engine };
  const { parent, local } = change;
  return { kind, tier, parent: parent && textOfHashes(parent), engine, local: local && textOfHashes(local) };
}

function kvEventOf(value: unknown): KvEvent | undefined {
  const fields = objectOf(value);
  const change = changeOf(fields);
  if (fields === undefined || change === undefined) return undefined;
  const { incarnation, eventId, more } = fields;
  if (typeof incarnation !== "string" || !isId(eventId, 0)) return undefined;
  if (more === undefined) return { ...change, incarnation, eventId };
  const others = Array.isArray(more) ? more.map((other) => changeOf(objectOf(other))) : [undefined];
  return others.every((other) => other !== undefined) ? { ...change, incarnation, eventId, more: others } : undefined;
}

function changeOf(fields: Record<string, unknown> | undefined): KvChange | undefined {
  if (fields === undefined || !isTier(fields["tier"])) return undefined;
  const { kind, tier } = fields;
  if (kind === "cleared") return { kind, tier };
  const engine = hashesOf(fields["engine"]);
  if (engine === undefined) return undefined;
  if (kind === "removed") return { kind, tier, engine };
  if (kind !== "stored") return undefined;
  const parent = fields["parent"] === null ? null : hashesOf(fields["parent"]);
  const local = fields["local"] === null ? null : hashesOf(fields["local"]);
  if (parent === undefined || local === undefined) return undefined;
  if (parent !== null && parent.length !== 2) return undefined;
  if (local !== null && local.length !== engine.length) return undefined;
  return { kind, tier, parent, engine, local };
}

function runOf(value: unknown): SnapshotRun | undefined {
  const fields = objectOf(value);
  if (fields === undefined || !isTier(fields["tier"])) return undefined;
  const sequence = hashesOf(fields["sequence"]);
  const engine = fields["engine"] === null ? null : hashesOf(fields["engine"]);
  if (sequence === undefined || engine === undefined) return undefined;
  return engine === null || engine.length === sequence.length ? { tier: fields["tier"], sequence, engine } : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function objectOf(value: unknown): Record<string, unknown> | undefined {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
}

function isTier(value: unknown): value is Tier {
  return TIERS.includes(value as Tier);
}

function isId(value: unknown, least: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= least;
}

function isAmount(value: unknown): value is number {
  return typeof value === "number" && value >= 0;
}
