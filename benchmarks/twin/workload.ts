import { readFileSync } from "node:fs";
import { Rng } from "../../src/core/rng.ts";
import type { TraceRow } from "../../src/workload/trace/row.ts";
import { syntheticTrace } from "../trace.ts";

/** Reads the columns of a Mooncake-format trace that a simulation needs. */
export function readTimedTrace(file: string): TraceRow[] {
  const rows: TraceRow[] = [];
  readFileSync(file, "utf8")
    .split("\n")
    .forEach((line, index) => {
      if (line.trim() === "") return;
      const row = JSON.parse(line) as Record<string, unknown>;
      const { timestamp, input_length: input, output_length: output, hash_ids: ids } = row;
      if (![timestamp, input, output].every((value) => typeof value === "number") || !Array.isArray(ids)) {
        throw new Error(
          `${file}:${index + 1}: needs the numbers timestamp, input_length, output_length and an array hash_ids`,
        );
      }
      rows.push({
        timestampMs: timestamp as number,
        inputTokens: input as number,
        outputTokens: Math.max(1, output as number),
        hashIds: ids as number[],
      });
    });
  return rows;
}

/** Where there is no trace: the synthetic one, with Poisson arrivals and outputs of a long-tailed length. */
export function syntheticTimedTrace(requests: number, requestsPerSecond: number): TraceRow[] {
  const rng = new Rng(1).stream("times");
  let atMs = 0;
  return syntheticTrace(requests, 1).map(({ inputTokens, hashIds }) => {
    atMs -= (Math.log(rng.uniform()) * 1000) / requestsPerSecond;
    return {
      timestampMs: Math.round(atMs),
      inputTokens,
      outputTokens: Math.ceil(-Math.log(rng.uniform()) * 180),
      hashIds,
    };
  });
}

/**
 * Repeats a trace until it has as many rows as wanted. Copies follow one another in time and share no ids, so that no copy
 * finds its prompts cached by the one before.
 */
export function tiled(rows: readonly TraceRow[], requests: number): TraceRow[] {
  const times = rows.map(({ timestampMs }) => timestampMs ?? 0);
  const lastMs = times.reduce((last, time) => Math.max(last, time), 0);
  const periodMs = lastMs + lastMs / Math.max(1, rows.length - 1);
  const ids = rows.reduce((most, { hashIds }) => hashIds.reduce((a, b) => Math.max(a, b), most), 0) + 1;
  const out: TraceRow[] = [];
  for (let copy = 0; out.length < requests; copy++) {
    for (const [at, row] of rows.entries()) {
      if (out.length === requests) break;
      const timestampMs = times[at] + copy * periodMs;
      out.push({ ...row, timestampMs, hashIds: copy === 0 ? row.hashIds : renamed(row.hashIds, copy * ids) });
    }
  }
  return out;
}

/** Not by `map`, which makes arrays of another kind than reading a trace does: the twin would be compiled for both. */
function renamed(hashIds: readonly number[], by: number): number[] {
  const ids: number[] = [];
  for (const id of hashIds) ids.push(id + by);
  return ids;
}

/** The same requests in less or more time. */
export function atSpeed(rows: readonly TraceRow[], speed: number): TraceRow[] {
  return rows.map((row) => ({ ...row, timestampMs: (row.timestampMs ?? 0) / speed }));
}
