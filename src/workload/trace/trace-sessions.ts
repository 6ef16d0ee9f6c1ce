import { NS_PER_MS } from "../../core/clock.ts";
import { WarmpathError } from "../../core/errors.ts";
import type { Prompt } from "../prompt.ts";
import type { SessionScript, SessionSupply, TurnScript } from "../request.ts";
import { inputTokensOf, type TraceRow } from "./row.ts";

interface MutableSession {
  readonly name: string;
  readonly startMs: number;
  readonly turns: TurnScript[];
}

/**
 * The sessions of a trace in the order of their start. Rows that wait (`delay`) follow the row of their session before
 * them; every other row begins at its own time, also where it has a session.
 */
export class TraceSessions implements SessionSupply {
  readonly #sessions: readonly MutableSession[];

  /** `traceBlockTokens` is what an id of the trace stands for, not an engine's block. */
  constructor(rows: readonly TraceRow[], traceBlockTokens: number) {
    const sessions: MutableSession[] = [];
    const latest = new Map<string, MutableSession>();
    for (const [at, row] of rows.entries()) {
      const turn = turnOf(row, at, traceBlockTokens);
      const earlier = row.sessionId === undefined ? undefined : latest.get(row.sessionId);
      if (row.delayMs !== undefined && earlier !== undefined) {
        earlier.turns.push(turn);
        continue;
      }
      if (row.timestampMs === undefined) {
        throw new WarmpathError(
          "WP_INVALID_INPUT",
          `row ${at + 1} of the trace has a delay but no earlier turn of session ${row.sessionId}, and no timestamp`,
        );
      }
      const session = { name: row.sessionId ?? `row-${at}`, startMs: row.timestampMs, turns: [turn] };
      sessions.push(session);
      if (row.sessionId !== undefined) latest.set(row.sessionId, session);
    }
    this.#sessions = sessions.sort((a, b) => a.startMs - b.startMs);
  }

  get size(): number {
    return this.#sessions.length;
  }

  /** Whether rows wait for others, so that nobody knows beforehand when the last one is sent. */
  get hasFollowUps(): boolean {
    return this.#sessions.some(({ turns }) => turns.length > 1);
  }

  session(ordinal: number): SessionScript | undefined {
    const session = this.#sessions[ordinal];
    if (session === undefined) return undefined;
    const { name, startMs, turns } = session;
    return { session: ordinal, name, startNs: Math.round(startMs * NS_PER_MS), turns };
  }
}

/** The prompt of a row; one without ids shares nothing with any other. */
export function promptOfRow(row: TraceRow, at: number, traceBlockTokens: number): Prompt {
  const tokens = inputTokensOf(row, at);
  if (row.hashIds.length === 0) return { kind: "segments", tokens, ids: [ownSegmentId(at, 0)], ends: [tokens] };
  return { kind: "uniform", tokens, ids: row.hashIds, segmentTokens: traceBlockTokens };
}

function turnOf(row: TraceRow, at: number, traceBlockTokens: number): TurnScript {
  return {
    requestId: at,
    prompt: { kind: "whole", prompt: promptOfRow(row, at, traceBlockTokens) },
    outputTokens: row.outputTokens,
    answerId: ownSegmentId(at, 1),
    thinkNs: Math.round((row.delayMs ?? 0) * NS_PER_MS),
  };
}

/** Negative, because the ids of a trace are not: an answer is never mistaken for a block of the trace. */
function ownSegmentId(row: number, role: 0 | 1): number {
  return -(2 * row + role + 1);
}
