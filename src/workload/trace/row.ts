import { WarmpathError } from "../../core/errors.ts";

/** A request of a trace, as a codec of src/wire reads it. */
export interface TraceRow {
  /** Undefined for a turn that waits for the one before it. */
  readonly timestampMs?: number;
  /** Undefined where the row brings text instead of a length. */
  readonly inputTokens?: number;
  readonly outputTokens: number;
  /** One id per block of the trace, the last one cut; empty where nothing is shared. */
  readonly hashIds: readonly number[];
  readonly sessionId?: string;
  readonly delayMs?: number;
  readonly textInput?: string;
  readonly messages?: readonly unknown[];
}

/** The length of a row's prompt; throws for a row that has only text, whose length no model of an engine can know. */
export function inputTokensOf(row: TraceRow, at: number): number {
  if (row.inputTokens !== undefined) return row.inputTokens;
  throw new WarmpathError("WP_INVALID_INPUT", `row ${at + 1} of the trace has text but no input_length`);
}
