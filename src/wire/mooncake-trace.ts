/**
 * The trace format of Mooncake: a JSON object per line with `timestamp` (ms), `input_length`, `output_length` and
 * `hash_ids`, one id per 512 tokens. AIPerf's additions `session_id`, `delay`, `text_input` and `messages` are read too.
 */
import { WarmpathError } from "../core/errors.ts";

/** Tokens that an id of the public traces stands for. */
export const MOONCAKE_BLOCK_TOKENS = 512;

/** A row of a trace. */
export interface MooncakeRow {
  /** Undefined for a turn that waits for the one before it. */
  readonly timestampMs?: number;
  /** Undefined where the row brings text instead. */
  readonly inputTokens?: number;
  readonly outputTokens: number;
  /** Ids of the prompt's blocks; empty where the row shares nothing with others. */
  readonly hashIds: readonly number[];
  readonly sessionId?: string;
  /** Time after the end of the session's turn before. */
  readonly delayMs?: number;
  readonly textInput?: string;
  readonly messages?: readonly unknown[];
}

/** A line that was read, or what is wrong with it. */
export type MooncakeLine =
  | { readonly ok: true; readonly row: MooncakeRow }
  | { readonly ok: false; readonly problem: string };

/** Reads one line; a problem names the field, what it must be and what it was. Unknown fields are ignored. */
export function parseMooncakeLine(line: string, blockTokens: number = MOONCAKE_BLOCK_TOKENS): MooncakeLine {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    return { ok: false, problem: `is not JSON: ${(error as SyntaxError).message}` };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { ok: false, problem: `must be an object, got ${display(value)}` };
  }
  const fields = value as Record<string, unknown>;
  const problem = problemOf(fields, blockTokens);
  return problem === undefined ? { ok: true, row: rowOf(fields) } : { ok: false, problem };
}

/** Reads a whole file, without blank lines; throws with one line that names file, line and field. */
export function parseMooncakeTrace(
  text: string,
  source: string,
  blockTokens: number = MOONCAKE_BLOCK_TOKENS,
): MooncakeRow[] {
  const rows: MooncakeRow[] = [];
  let number = 0;
  for (const line of text.split("\n")) {
    number++;
    if (line.trim() === "") continue;
    const parsed = parseMooncakeLine(line, blockTokens);
    if (!parsed.ok) throw new WarmpathError("WP_INVALID_INPUT", `${source} line ${number}: ${parsed.problem}`);
    rows.push(parsed.row);
  }
  if (rows.length === 0) throw new WarmpathError("WP_INVALID_INPUT", `${source} has no rows`);
  return rows;
}

/** Writes a row as one line, in the order of fields and with the spaces of the public files. */
export function writeMooncakeRow(row: MooncakeRow): string {
  const fields: string[] = [];
  const add = (name: string, value: unknown): void => {
    if (value !== undefined) fields.push(`"${name}": ${JSON.stringify(value)}`);
  };
  add("timestamp", row.timestampMs === undefined ? undefined : toMicroseconds(row.timestampMs));
  add("input_length", row.inputTokens);
  add("output_length", row.outputTokens);
  if (row.hashIds.length > 0) fields.push(`"hash_ids": [${row.hashIds.join(", ")}]`);
  add("session_id", row.sessionId);
  add("delay", row.delayMs === undefined ? undefined : toMicroseconds(row.delayMs));
  add("text_input", row.textInput);
  add("messages", row.messages);
  return `{${fields.join(", ")}}`;
}

function problemOf(fields: Record<string, unknown>, blockTokens: number): string | undefined {
  const { timestamp, delay, session_id: session, input_length: input, output_length: output, hash_ids: ids } = fields;
  const { text_input: text, messages } = fields;
  if (session !== undefined && !isSessionId(session)) return wrong("session_id", "a text or a whole number", session);
  if (delay !== undefined && !isTime(delay)) return wrong("delay", "a number of ms, 0 or more", delay);
  if (delay !== undefined && session === undefined) return "delay needs a session_id";
  if (timestamp === undefined && delay === undefined) return "timestamp is missing";
  if (timestamp !== undefined && !isTime(timestamp)) return wrong("timestamp", "a number of ms, 0 or more", timestamp);
  if (text !== undefined && typeof text !== "string") return wrong("text_input", "a text", text);
  if (messages !== undefined && !Array.isArray(messages)) return wrong("messages", "a list", messages);
  if (input === undefined && text === undefined && messages === undefined) return "input_length is missing";
  if (input !== undefined && !isCount(input, 1)) return wrong("input_length", "a whole number, 1 or more", input);
  if (output === undefined) return "output_length is missing";
  if (!isCount(output, 1)) return wrong("output_length", "a whole number, 1 or more", output);
  return ids === undefined ? undefined : idsProblem(ids, input, blockTokens);
}

function idsProblem(ids: unknown, inputTokens: number | undefined, blockTokens: number): string | undefined {
  if (!Array.isArray(ids)) return wrong("hash_ids", "a list of whole numbers", ids);
  for (let at = 0; at < ids.length; at++) {
    if (!isCount(ids[at], 0)) return wrong(`hash_ids[${at}]`, "a whole number, 0 or more", ids[at]);
  }
  if (ids.length === 0) return undefined;
  if (inputTokens === undefined) return "hash_ids needs an input_length";
  const blocks = Math.ceil(inputTokens / blockTokens);
  if (ids.length === blocks) return undefined;
  const needed = `${blocks} for an input_length of ${inputTokens} in blocks of ${blockTokens}`;
  return `hash_ids must have ${needed}, got ${ids.length}`;
}

/** The row of fields that were checked; what is absent stays absent. */
function rowOf(fields: Record<string, unknown>): MooncakeRow {
  const { timestamp, delay, session_id: session, input_length: input, text_input: text, messages } = fields;
  return {
    ...(timestamp === undefined ? {} : { timestampMs: timestamp as number }),
    ...(input === undefined ? {} : { inputTokens: input as number }),
    outputTokens: fields["output_length"] as number,
    hashIds: (fields["hash_ids"] as number[] | undefined) ?? [],
    ...(session === undefined ? {} : { sessionId: `${session as string | number}` }),
    ...(delay === undefined ? {} : { delayMs: delay as number }),
    ...(text === undefined ? {} : { textInput: text as string }),
    ...(messages === undefined ? {} : { messages: messages as unknown[] }),
  };
}

function isCount(value: unknown, least: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= least;
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= LONGEST_MS;
}

/** 104 days: what integer nanoseconds can hold. */
const LONGEST_MS = Number.MAX_SAFE_INTEGER / 1_000_000;

function isSessionId(value: unknown): boolean {
  return (typeof value === "string" && value !== "") || Number.isSafeInteger(value);
}

function wrong(field: string, requirement: string, value: unknown): string {
  return `${field} must be ${requirement}, got ${display(value)}`;
}

function display(value: unknown): string {
  const written = JSON.stringify(value);
  return written.length > 40 ? `${written.slice(0, 39)}…` : written;
}

function toMicroseconds(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
