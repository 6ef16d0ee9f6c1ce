import { readFileSync } from "node:fs";
import { ROOT_HI, ROOT_LO, chainHashes } from "../src/core/hash.ts";
import { Rng, mixPair } from "../src/core/rng.ts";

/** Tokens that one id of a Mooncake trace stands for. */
const TRACE_BLOCK_TOKENS = 512;

/** What the benchmarks need of a trace row: how long the prompt is, and which 512-token blocks it is made of. */
export interface TraceRow {
  readonly inputTokens: number;
  readonly hashIds: readonly number[];
}

/** Reads a Mooncake-format trace: one JSON object a line with `input_length` and `hash_ids`. */
export function readTrace(file: string): TraceRow[] {
  const rows: TraceRow[] = [];
  readFileSync(file, "utf8")
    .split("\n")
    .forEach((line, index) => {
      if (line.trim() === "") return;
      const row = JSON.parse(line) as { input_length?: unknown; hash_ids?: unknown };
      if (typeof row.input_length !== "number" || !Array.isArray(row.hash_ids)) {
        throw new Error(`${file}:${index + 1}: needs a number input_length and an array hash_ids`);
      }
      rows.push({ inputTokens: row.input_length, hashIds: row.hash_ids as number[] });
    });
  return rows;
}

/**
 * A seeded trace of the conversation trace's shape: one block shared by all, sessions that resend their growing history,
 * inputs of a long-tailed length with a median near 7,000 tokens.
 */
export function syntheticTrace(requests: number, seed: number): TraceRow[] {
  const rng = new Rng(seed).stream("synthetic-trace");
  const rows: TraceRow[] = [];
  const sessions: number[][] = [];
  let nextId = 1;
  for (let i = 0; i < requests; i++) {
    const isNew = sessions.length === 0 || rng.uniform() < 0.55;
    const history = isNew ? [0] : sessions[rng.below(sessions.length)];
    const added = isNew ? Math.ceil(Math.exp(2.2 + 0.95 * normal(rng))) : 1 + rng.below(6);
    const hashIds = [...history];
    for (let k = 0; k < Math.min(added, 240); k++) hashIds.push(nextId++);
    const tail = 1 + rng.below(TRACE_BLOCK_TOKENS);
    rows.push({ inputTokens: (hashIds.length - 1) * TRACE_BLOCK_TOKENS + tail, hashIds });
    // The last, partial block is not part of what the next turn resends.
    if (isNew) sessions.push(hashIds.slice(0, -1));
    else sessions[sessions.indexOf(history)] = hashIds.slice(0, -1);
    if (sessions.length > 800) sessions.shift();
  }
  return rows;
}

function normal(rng: Rng): number {
  return Math.sqrt(-2 * Math.log(rng.uniform())) * Math.cos(2 * Math.PI * rng.uniform());
}

/** Local hashes of a row's full blocks at a block size that divides 512. */
export function rowLocalHashes(row: TraceRow, blockTokens: number): Uint32Array {
  const perId = TRACE_BLOCK_TOKENS / blockTokens;
  const blocks = Math.min(Math.floor(row.inputTokens / blockTokens), row.hashIds.length * perId);
  const local = new Uint32Array(2 * blocks);
  for (let i = 0; i < blocks; i++) {
    const id = row.hashIds[Math.floor(i / perId)];
    local[2 * i] = mixPair(id, i % perId);
    local[2 * i + 1] = mixPair(id ^ 0x5bd1e995, (i % perId) + 1000);
  }
  return local;
}

/** The sequence hashes that belong to a row's local ones. */
export function chained(local: Uint32Array): Uint32Array {
  const sequence = new Uint32Array(local.length);
  chainHashes(local, local.length / 2, ROOT_LO, ROOT_HI, sequence);
  return sequence;
}
