import { chainHashes, hashText, NO_IDENTITY, ROOT_HI, ROOT_LO } from "../../core/hash.ts";
import { NS_PER_MS } from "../../core/clock.ts";
import { hashPromptBlocks } from "../prompt-blocks.ts";
import type { Prompt } from "../prompt.ts";
import type { SessionSupply } from "../request.ts";
import { SessionRun } from "../session-run.ts";
import type { TraceRow } from "./row.ts";

/**
 * Sessions written as rows of a trace, by their start. The first turn has a timestamp; the others wait for the turn
 * before them and have a delay, since nobody knows yet how long answers take.
 */
export function rowsOfSessions(supply: SessionSupply, sessions: number, traceBlockTokens: number): TraceRow[] {
  const ids = new Map<string, number>();
  const rows: TraceRow[] = [];
  for (let ordinal = 0; ordinal < sessions; ordinal++) {
    const script = supply.session(ordinal);
    if (script === undefined) break;
    const isAlone = script.turns.length === 1;
    const run = new SessionRun(script);
    while (run.turnsLeft > 0) {
      const delayMs = run.thinkNs / NS_PER_MS;
      const request = run.next(0);
      rows.push({
        ...(request.turn === 0 ? { timestampMs: (script.startNs ?? 0) / NS_PER_MS } : { delayMs }),
        inputTokens: request.promptTokens,
        outputTokens: request.outputTokens,
        hashIds: hashIdsOf(request.prompt, traceBlockTokens, ids),
        ...(isAlone ? {} : { sessionId: script.name }),
      });
      run.answered(request, request.outputTokens);
    }
  }
  return rows;
}

/** Ids of a prompt's blocks, the cut one too, numbered in the order in which they first occur, as the public traces do. */
function hashIdsOf(prompt: Prompt, blockTokens: number, known: Map<string, number>): number[] {
  const blocks = Math.ceil(prompt.tokens / blockTokens);
  const hashes = new Uint32Array(2 * blocks);
  hashPromptBlocks(prompt, 0, blocks, blockTokens, NO_IDENTITY, hashes);
  chainHashes(hashes, blocks, ROOT_LO, ROOT_HI, hashes);
  return Array.from({ length: blocks }, (_, block) => {
    const key = hashText(hashes[2 * block], hashes[2 * block + 1]);
    const id = known.get(key) ?? known.size;
    known.set(key, id);
    return id;
  });
}
