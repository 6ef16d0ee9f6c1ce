/**
 * One measurement in a process of its own: builds the events outside the clock, then times what is asked for and prints one
 * line of JSON. Started by ../index-bench.ts with `--expose-gc`.
 */
import { performance } from "node:perf_hooks";
import { KvIndex } from "../../src/core/kv-index/kv-index.ts";
import { NaiveIndex } from "../../src/core/kv-index/naive-index.ts";
import type { KvEvidence, KvIndexStats } from "../../src/core/kv-index/types.ts";
import { readTrace, syntheticTrace } from "../trace.ts";
import { indexWorkload, type IndexWorkload } from "./workload.ts";

export interface MeasureRequest {
  readonly what: "speed" | "bytes" | "bytes-full" | "capped";
  readonly index: "paged" | "naive";
  readonly workers: number;
  readonly cacheBlocks: number;
  readonly trace: string | null;
  readonly requests: number;
}

export interface MeasureResult {
  readonly writesPerCpuSecond?: number;
  readonly matchP50Us?: number;
  readonly matchP99Us?: number;
  /** With engines' own hashes and a cap at half of what the caches hold. */
  readonly cappedWritesPerCpuSecond?: number;
  readonly cappedApplyP999Us?: number;
  readonly bytesPerBlock?: number;
  readonly distinctBlocks?: number;
}

const BLOCK_TOKENS = 64;

const request = JSON.parse(process.argv[2]) as MeasureRequest;
const rows = request.trace === null ? syntheticTrace(request.requests, 1) : readTrace(request.trace);
const opaque = request.what === "bytes-full" || request.what === "capped";
const workload = indexWorkload(rows.slice(0, request.requests), {
  workers: request.workers,
  cacheBlocks: request.cacheBlocks,
  blockTokens: BLOCK_TOKENS,
  opaque,
});
process.stdout.write(`${JSON.stringify(measure(request, workload))}\n`);

function measure(wanted: MeasureRequest, work: IndexWorkload): MeasureResult {
  switch (wanted.what) {
    case "speed":
      return { writesPerCpuSecond: writesPerCpuSecond(wanted, work), ...matchTimes(wanted, work) };
    case "capped":
      return capped(wanted, work);
    case "bytes":
    case "bytes-full":
      return bytesPerBlock(wanted, work);
  }
}

/** By default sized as an operator would, from what the caches hold at most; for memory, by what is really needed. */
function create(wanted: MeasureRequest, work: IndexWorkload, need?: KvIndexStats): KvEvidence {
  if (wanted.index === "naive") return new NaiveIndex({ maxReplicas: wanted.workers });
  return new KvIndex({
    maxReplicas: wanted.workers,
    maxBlocks: need === undefined ? Math.ceil(work.peakHeld * 1.25) : need.pages * 16,
    maxAliases: opaque ? work.peakHeld : 1,
    ...(need === undefined ? {} : { maxChunks: need.chunks }),
  });
}

function replay(index: KvEvidence, work: IndexWorkload): void {
  for (const { replica, events } of work.steps) for (const event of events) index.apply(replica, "device", event);
}

function clear(index: KvEvidence, wanted: MeasureRequest): void {
  for (let replica = 0; replica < wanted.workers; replica++) index.clearReplica(replica);
}

/** The first pass compiles the code; the second is timed. */
function writesPerCpuSecond(wanted: MeasureRequest, work: IndexWorkload): number {
  const index = create(wanted, work);
  replay(index, work);
  clear(index, wanted);
  globalThis.gc?.();
  const start = process.cpuUsage();
  replay(index, work);
  const used = process.cpuUsage(start);
  return (work.writes * 1e6) / (used.user + used.system);
}

/** What it costs to live at the cap: every store makes room first, and aliases go with what is forgotten. */
function capped(wanted: MeasureRequest, work: IndexWorkload): MeasureResult {
  const half = Math.ceil(work.peakHeld / 2);
  const index = new KvIndex({ maxReplicas: wanted.workers, maxBlocks: half });
  replay(index, work);
  globalThis.gc?.();
  const start = process.cpuUsage();
  replay(index, work);
  const used = process.cpuUsage(start);
  const times: number[] = [];
  for (const { replica, events } of work.steps) {
    for (const event of events) {
      const before = performance.now();
      index.apply(replica, "device", event);
      times.push((performance.now() - before) * 1000);
    }
  }
  times.sort((a, b) => a - b);
  return {
    cappedWritesPerCpuSecond: (work.writes * 1e6) / (used.user + used.system),
    cappedApplyP999Us: times[Math.floor(times.length * 0.999)],
  };
}

function matchTimes(wanted: MeasureRequest, work: IndexWorkload): MeasureResult {
  const times: number[] = [];
  const index = create(wanted, work);
  for (let pass = 0; pass < 2; pass++) {
    times.length = 0;
    clear(index, wanted);
    for (const { replica, sequence, events } of work.steps) {
      const start = performance.now();
      index.match(sequence, sequence.length / 2);
      times.push((performance.now() - start) * 1000);
      for (const event of events) index.apply(replica, "device", event);
    }
  }
  times.sort((a, b) => a - b);
  return { matchP50Us: times[Math.floor(times.length * 0.5)], matchP99Us: times[Math.floor(times.length * 0.99)] };
}

function bytesPerBlock(wanted: MeasureRequest, work: IndexWorkload): MeasureResult {
  const need = wanted.index === "paged" ? greatestNeed(wanted, work) : undefined;
  const before = liveBytes();
  const index = create(wanted, work, need);
  replay(index, work);
  const bytes = liveBytes() - before;
  const distinct = index instanceof KvIndex ? index.stats().blocks : (index as NaiveIndex).blocks;
  return { bytesPerBlock: bytes / distinct, distinctBlocks: distinct };
}

/** The most pages and chunks in use at any moment of the replay. */
function greatestNeed(wanted: MeasureRequest, work: IndexWorkload): KvIndexStats {
  const index = create(wanted, work) as KvIndex;
  let need = index.stats();
  for (const { replica, events } of work.steps) {
    for (const event of events) index.apply(replica, "device", event);
    const now = index.stats();
    need = { ...now, pages: Math.max(need.pages, now.pages), chunks: Math.max(need.chunks, now.chunks) };
  }
  return need;
}

function liveBytes(): number {
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
