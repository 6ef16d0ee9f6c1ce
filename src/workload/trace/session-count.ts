import type { TraceRow } from "./row.ts";

/** How many sessions a trace has, and whether it says so or they were guessed. */
export interface SessionCount {
  readonly sessions: number;
  readonly from: "session-id" | "shared-blocks";
}

/**
 * A first block that so many rows share is a system prompt, not the beginning of one conversation: a share of the rows
 * between the first and the last that have it, because another part of the trace, such as another copy of it, may have
 * another prompt.
 */
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

/** Rows that begin with the same block. */
interface PromptGroup {
  readonly rows: number;
  readonly firstAt: number;
  readonly lastAt: number;
  /** The blocks that all of them begin with. */
  readonly common: readonly number[];
}

/** By first block of a system prompt, how many leading blocks all rows that begin with it share. */
function systemPromptBlocks(rows: readonly TraceRow[]): Map<number, number> {
  const groups = new Map<number, PromptGroup>();
  for (const [at, { hashIds }] of rows.entries()) {
    if (hashIds.length === 0) continue;
    const group = groups.get(hashIds[0]) ?? { rows: 0, firstAt: at, lastAt: at, common: hashIds };
    let shared = 0;
    while (shared < group.common.length && group.common[shared] === hashIds[shared]) shared++;
    const common = shared === group.common.length ? group.common : group.common.slice(0, shared);
    groups.set(hashIds[0], { rows: group.rows + 1, firstAt: group.firstAt, lastAt: at, common });
  }
  return new Map(
    [...groups].filter(([, group]) => isSystemPrompt(group)).map(([first, { common }]) => [first, common.length]),
  );
}

function isSystemPrompt({ rows, firstAt, lastAt }: PromptGroup): boolean {
  return rows >= Math.max(SYSTEM_PROMPT_ROWS, SYSTEM_PROMPT_SHARE * (lastAt - firstAt + 1));
}
