import { hashString } from "../rng.ts";
import type { CandidateView } from "./types.ts";

/** One replica as a row of plain numbers; what is left out is 0. */
export interface CandidateRow {
  readonly name: string;
  /** False for a replica that is in the fleet but was filtered out of this decision. */
  readonly eligible?: boolean;
  readonly lastChosen?: number;
  readonly cachedBlocks?: number;
  readonly confirmedBlocks?: number;
  /** As many as are confirmed unless told. */
  readonly settledBlocks?: number;
  readonly hostBlocks?: number;
  readonly diskBlocks?: number;
  readonly activePrefixBlocks?: number;
  readonly inFlight?: number;
  readonly decoding?: number;
  readonly pendingPrefillTokens?: number;
  readonly pendingPrefillPairs?: number;
  readonly contextTokens?: number;
  readonly activeBlocks?: number;
  readonly newBlocks?: number;
  readonly batchSlots?: number;
  readonly kvBlocks?: number;
  readonly stepTokens?: number;
}

/** The request's side of a view. */
export interface RequestRow {
  readonly promptBlocks: number;
  /** Defaults to full blocks only: `promptBlocks × blockTokens`. */
  readonly promptTokens?: number;
  readonly blockTokens?: number;
  readonly expectedOutputTokens?: number;
  readonly session?: string;
  /** What the prompt begins with: two requests of one name have the same blocks as far as anybody looks. */
  readonly prefix?: string;
  readonly chance?: number;
  readonly mayHold?: boolean;
  readonly nowNs?: number;
}

/**
 * Makes a view of rows, for decisions that do not come from a running router: a file of candidates to explain, an
 * example in the docs, a test. The router itself fills its one view in place instead.
 */
export function candidateView(request: RequestRow, rows: readonly CandidateRow[]): CandidateView {
  const blockTokens = request.blockTokens ?? 64;
  const eligible = rows.flatMap((row, replica) => (row.eligible === false ? [] : [replica]));
  const integers = (read: (row: CandidateRow) => number | undefined): Int32Array =>
    Int32Array.from(rows, (row) => read(row) ?? 0);
  const numbers = (read: (row: CandidateRow) => number | undefined): Float64Array =>
    Float64Array.from(rows, (row) => read(row) ?? 0);
  return {
    nowNs: request.nowNs ?? 0,
    promptTokens: request.promptTokens ?? request.promptBlocks * blockTokens,
    promptBlocks: request.promptBlocks,
    blockTokens,
    expectedOutputTokens: request.expectedOutputTokens ?? 0,
    sessionKey: hashString(request.session ?? ""),
    prefixKey: (blocks) => hashString(`${request.prefix ?? ""}/${blocks}`),
    settledBlocks: (replica) => rows[replica].settledBlocks ?? rows[replica].confirmedBlocks ?? 0,
    chance: request.chance ?? 0,
    mayHold: request.mayHold ?? false,
    count: eligible.length,
    candidates: Int32Array.from(eligible),
    key: Uint32Array.from(rows, (row) => hashString(row.name)),
    lastChosen: numbers((row) => row.lastChosen),
    cachedBlocks: integers((row) => row.cachedBlocks),
    confirmedBlocks: integers((row) => row.confirmedBlocks),
    hostBlocks: integers((row) => row.hostBlocks),
    diskBlocks: integers((row) => row.diskBlocks),
    activePrefixBlocks: integers((row) => row.activePrefixBlocks),
    load: {
      inFlight: integers((row) => row.inFlight),
      decoding: integers((row) => row.decoding),
      pendingPrefillTokens: numbers((row) => row.pendingPrefillTokens),
      pendingPrefillPairs: numbers((row) => row.pendingPrefillPairs),
      contextTokens: numbers((row) => row.contextTokens),
      activeBlocks: integers((row) => row.activeBlocks),
      newBlocks: integers((row) => row.newBlocks),
      batchSlots: integers((row) => row.batchSlots),
      kvBlocks: integers((row) => row.kvBlocks),
      stepTokens: integers((row) => row.stepTokens),
    },
  };
}
