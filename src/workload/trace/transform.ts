import { WarmpathError } from "../../core/errors.ts";
import type { Rng } from "../../core/rng.ts";
import { detectGrid } from "./grid.ts";
import { inputTokensOf, type TraceRow } from "./row.ts";

/** Bounds on lengths, all included; what is not named is not bounded. */
export interface LengthFilter {
  readonly minInputTokens?: number;
  readonly maxInputTokens?: number;
  readonly minOutputTokens?: number;
  readonly maxOutputTokens?: number;
  /** Bounds prompt and answer together, as a model's context does. */
  readonly maxTotalTokens?: number;
}

/** A part of a trace: by row, by time, or both; ends are excluded. */
export interface TraceSlice {
  readonly fromRow?: number;
  readonly toRow?: number;
  readonly fromMs?: number;
  readonly toMs?: number;
}

/** The rows inside the bounds, at their times; throws for a row whose length is bounded and unknown. */
export function filterRows<Row extends TraceRow>(rows: readonly Row[], filter: LengthFilter): Row[] {
  const { minInputTokens = 0, maxInputTokens = Infinity, minOutputTokens = 0, maxOutputTokens = Infinity } = filter;
  const { maxTotalTokens = Infinity } = filter;
  const isInputBounded = minInputTokens > 0 || maxInputTokens < Infinity || maxTotalTokens < Infinity;
  return keepRows(rows, (row, at) => {
    const { outputTokens } = row;
    const inputTokens = isInputBounded ? inputTokensOf(row, at) : 0;
    if (inputTokens < minInputTokens || inputTokens > maxInputTokens) return false;
    if (outputTokens < minOutputTokens || outputTokens > maxOutputTokens) return false;
    return inputTokens + outputTokens <= maxTotalTokens;
  });
}

/** A part of the rows, the first of which is then at time 0 unless `keepTimes`. */
export function sliceRows<Row extends TraceRow>(rows: readonly Row[], slice: TraceSlice, keepTimes = false): Row[] {
  const { fromRow = 0, toRow = Infinity, fromMs = -Infinity, toMs = Infinity } = slice;
  const isKept = (_: Row, at: number, timeMs: number): boolean =>
    at >= fromRow && at < toRow && timeMs >= fromMs && timeMs < toMs;
  const kept = keepRows(rows, isKept, firstTimeMs(rows.slice(fromRow)));
  if (keepTimes) return kept;
  const firstMs = firstTimeMs(kept);
  return kept.map((row) => (row.timestampMs === undefined ? row : { ...row, timestampMs: row.timestampMs - firstMs }));
}

/** The rows `speed` times as fast: 0.8 takes 1.25 times as long. Thinking time inside sessions is people's and stays. */
export function scaleRows<Row extends TraceRow>(rows: readonly Row[], speed: number): Row[] {
  if (!(speed > 0 && speed < Infinity)) {
    throw new WarmpathError("WP_INVALID_INPUT", `speed must be more than 0, got ${speed}`);
  }
  return rows.map((row) => (row.timestampMs === undefined ? row : { ...row, timestampMs: row.timestampMs / speed }));
}

/**
 * Spreads rows that share a time of the grid evenly at random until the next time of the grid. The public traces are
 * rounded down to about 3 s: replayed as they are, they are a train of bursts that the real traffic was not. Rows come
 * out in the order of their new times; each row's place depends on the seed and its own number alone.
 */
export function jitterRows<Row extends TraceRow>(rows: readonly Row[], rng: Rng): Row[] {
  const grid = detectGrid(rows);
  if (grid === undefined) {
    throw new WarmpathError("WP_INVALID_INPUT", "the timestamps have no grid, so there is nothing to jitter inside");
  }
  const stream = rng.stream("trace-jitter");
  const jittered = rows.map((row, at) => {
    if (row.timestampMs === undefined) return row;
    const windowMs = Math.min(grid.nextMs(row.timestampMs) - row.timestampMs, grid.stepMs);
    const offsetMs = Math.floor(stream.stream(at).uniform() * windowMs * 1000) / 1000;
    return { ...row, timestampMs: row.timestampMs + offsetMs };
  });
  return inOrder(jittered);
}

/** `copies` of a trace one after the other, each with ids of its own, so that no copy finds another's blocks cached. */
export function tileRows<Row extends TraceRow>(rows: readonly Row[], copies: number): Row[] {
  let idsPerCopy = 0;
  let lastMs = 0;
  for (const row of rows) {
    for (const id of row.hashIds) idsPerCopy = Math.max(idsPerCopy, id + 1);
    lastMs = Math.max(lastMs, row.timestampMs ?? 0);
  }
  // A trace need not begin at 0, and nothing was sent before it began.
  const lengthMs = lastMs - Math.min(lastMs, firstTimeMs(rows));
  // One mean gap between the last row of a copy and the first of the next keeps the rate.
  const periodMs = lengthMs + lengthMs / Math.max(1, rows.length - 1);
  const tiled: Row[] = [];
  for (let copy = 0; copy < copies; copy++) {
    for (const row of rows) {
      tiled.push({
        ...row,
        ...(row.timestampMs === undefined ? {} : { timestampMs: row.timestampMs + copy * periodMs }),
        hashIds: row.hashIds.map((id) => id + copy * idsPerCopy),
        ...(row.sessionId === undefined ? {} : { sessionId: `${row.sessionId}#${copy}` }),
      });
    }
  }
  return tiled;
}

/** The rows by time, those of one time as they were. */
export function inOrder<Row extends TraceRow>(rows: readonly Row[]): Row[] {
  const times = effectiveTimesMs(rows);
  return Array.from(rows.keys())
    .sort((a, b) => times[a] - times[b] || a - b)
    .map((at) => rows[at]);
}

function firstTimeMs(rows: readonly TraceRow[]): number {
  return rows.reduce((least, { timestampMs = Infinity }) => Math.min(least, timestampMs), Infinity);
}

/**
 * A waiting turn whose session lost all turns before it has nothing to wait for: it gets the time of those, but none before
 * `earliestMs`, where what is kept begins: it would be sent alone, long before all others.
 */
function keepRows<Row extends TraceRow>(
  rows: readonly Row[],
  isKept: (row: Row, at: number, timeMs: number) => boolean,
  earliestMs = 0,
): Row[] {
  const times = effectiveTimesMs(rows);
  const begun = new Set<string>();
  const kept: Row[] = [];
  for (const [at, row] of rows.entries()) {
    if (!isKept(row, at, times[at])) continue;
    const isOrphan = row.timestampMs === undefined && !begun.has(row.sessionId ?? "");
    if (row.sessionId !== undefined) begun.add(row.sessionId);
    const beganMs = earliestMs < Infinity ? Math.max(times[at], earliestMs) : times[at];
    kept.push(isOrphan ? { ...row, timestampMs: beganMs } : row);
  }
  return kept;
}

/** When each row is sent, or for a turn that waits for another, when the turns before it were planned. */
export function effectiveTimesMs(rows: readonly TraceRow[]): number[] {
  const lastOfSession = new Map<string, number>();
  return rows.map((row) => {
    const before = lastOfSession.get(row.sessionId ?? "") ?? 0;
    // A turn that waits comes after the one before it, whatever time it has besides.
    const time = row.delayMs === undefined ? (row.timestampMs ?? before) : Math.max(row.timestampMs ?? 0, before);
    if (row.sessionId !== undefined) lastOfSession.set(row.sessionId, time);
    return time;
  });
}
