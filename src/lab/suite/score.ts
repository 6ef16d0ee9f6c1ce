import { meanWithout, type PartedValues, percentileWithout, type WithoutParts } from "../../measure/jackknife.ts";
import { percentileOfSorted } from "../../measure/percentile.ts";
import type { RunSample } from "./run-sample.ts";

/** The measures on which arms are judged against each other, noise and all. */
export const JUDGED_MEASURES = ["ttftP95Ms", "e2eMeanMs"] as const;

export type JudgedMeasure = (typeof JUDGED_MEASURES)[number];

/** What an arm did in a cell, over all runs; latencies over offered requests, null where not reached. */
export interface ArmScore {
  readonly offered: number;
  readonly completed: number;
  readonly ttftP95Ms: number | null;
  readonly ttftP50Ms: number | null;
  readonly e2eMeanMs: number | null;
  readonly tpotP95Ms: number | null;
  readonly goodputShare: number;
  /** Share of the prompt tokens of completed requests that came from a cache. */
  readonly hitShare: number;
  /** The judged measures without each part of each run, which is what comparisons need. */
  readonly without: Readonly<Record<JudgedMeasure, readonly (number | null)[]>>;
}

/** Pools the runs of an arm in a cell. */
export function scoreArm(runs: readonly RunSample[], partsPerRun: number): ArmScore {
  const parts = { parts: joinParts(runs, partsPerRun), partCount: runs.length * partsPerRun };
  const ttft = joined(runs, ({ ttftMs }) => ttftMs);
  const p95 = percentileWithout({ values: ttft, ...parts } satisfies PartedValues, 0.95);
  const e2e = meanWithout({ values: joined(runs, ({ e2eMs }) => e2eMs), ...parts });
  const tpot = joined(runs, ({ tpotMs }) => tpotMs).filter((value) => !Number.isNaN(value));
  const sum = (of: (run: RunSample) => number): number => runs.reduce((total, run) => total + of(run), 0);
  const promptTokens = sum((run) => run.promptTokens);
  return {
    offered: ttft.length,
    completed: sum(({ completed }) => completed),
    ttftP95Ms: reached(p95.all),
    ttftP50Ms: reached(percentileOfSorted(ttft.slice().sort(), 0.5)),
    e2eMeanMs: reached(e2e.all),
    tpotP95Ms: reached(percentileOfSorted(tpot.sort(), 0.95)),
    goodputShare: ttft.length === 0 ? 0 : sum(({ keptSlo }) => keptSlo) / ttft.length,
    hitShare: promptTokens === 0 ? 0 : sum(({ cachedTokens }) => cachedTokens) / promptTokens,
    without: { ttftP95Ms: withoutParts(p95), e2eMeanMs: withoutParts(e2e) },
  };
}

function withoutParts({ without }: WithoutParts): (number | null)[] {
  return without.map(reached);
}

/** JSON has no infinity. */
function reached(value: number): number | null {
  return Number.isFinite(value) ? Math.round(value * 1e6) / 1e6 : null;
}

function joined(runs: readonly RunSample[], of: (run: RunSample) => Float64Array): Float64Array {
  const pieces = runs.map(of);
  const all = new Float64Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

function joinParts(runs: readonly RunSample[], partsPerRun: number): Uint16Array {
  const numbers: number[] = [];
  for (const [run, { parts }] of runs.entries()) for (const part of parts) numbers.push(run * partsPerRun + part);
  return Uint16Array.from(numbers);
}
