import type { TraceRow } from "./row.ts";

/** How many sessions a trace has, and whether it says so or they were guessed. */
export interface SessionCount {
  readonly sessions: number;
  readonly from: "session-id" | "shared-blocks";
}

/** A first block that so many rows share is a system prompt, not the beginning of one conversation. */
const SYSTEM_PROMPT_SHARE = 0.05;
const SYSTEM_PROMPT_ROWS = 50;

/**
 * Counts sessions by `session_id`. Without it, a row continues an earlier one if they share a block beyond the system
 * prompt; a system prompt is what all rows with a very common first block have in front.
 */
export function countSessions(rows: readonly TraceRow[]): SessionCount {
  const named = new Set<string>();
  let unnamed = 0;
  for (const { sessionId } of rows) {
    if (sessionId === undefined) unnamed++;
    else named.add(sessionId);
  }
  if (named.size > 0) return { sessions: named.size + unnamed, from: "session-id" };
  const promptBlocks = systemPromptBlocks(rows);
  const seen = new Set<number>();
  let sessions = 0;
  for (const { hashIds } of rows) {
    const evidence = hashIds[promptBlocks.get(hashIds[0]) ?? 0];
    if (evidence === undefined || !seen.has(evidence)) sessions++;
    for (const id of hashIds) seen.add(id);
  }
  return { sessions, from: "shared-blocks" };
}

/** By first block of a system prompt, how many leading blocks all rows that begin with it share. */
function systemPromptBlocks(rows: readonly TraceRow[]): Map<number, number> {
  const groups = new Map<number, { rows: number; common: readonly number[] }>();
  for (const { hashIds } of rows) {
    if (hashIds.length === 0) continue;
    const group = groups.get(hashIds[0]) ?? { rows: 0, common: hashIds };
    let shared = 0;
    while (shared < group.common.length && group.common[shared] === hashIds[shared]) shared++;
    groups.set(hashIds[0], { rows: group.rows + 1, common: group.common.slice(0, shared) });
  }
  const least = Math.max(SYSTEM_PROMPT_ROWS, SYSTEM_PROMPT_SHARE * rows.length);
  return new Map(
    [...groups].filter(([, group]) => group.rows >= least).map(([first, group]) => [first, group.common.length]),
  );
}
