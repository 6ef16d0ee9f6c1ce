import { UNAVAILABLE } from "../../core/request-record.ts";
import {
  type BaselinePercentiles,
  type BaselinePoint,
  type Baselines,
  BASELINES_SCHEMA_VERSION,
} from "../../lab/results/baselines.ts";
import type { CellResult, Provenance, ResultsFile } from "../../lab/results/types.ts";
import type { PopulationSummaries } from "../../measure/summary.ts";

/** The cells of a run as baselines: a point for each arm and level, the means of its runs. */
export function baselinesOf(results: ResultsFile, provenance: Provenance | undefined): Baselines {
  const groups = new Map<string, CellResult[]>();
  for (const cell of results.cells) {
    const key = JSON.stringify([cell.arm, cell.level]);
    groups.set(key, [...(groups.get(key) ?? []), cell]);
  }
  return {
    schemaVersion: BASELINES_SCHEMA_VERSION,
    sources: [
      {
        experiment: results.experiment,
        startedAt: provenance?.startedAt ?? null,
        command: provenance?.command ?? null,
      },
    ],
    points: [...groups.values()].map(pointOf),
  };
}

function pointOf(cells: readonly CellResult[]): BaselinePoint {
  const [first] = cells;
  const offered = sum(cells.map(({ accounting }) => accounting.offered));
  const completed = sum(cells.map(({ accounting }) => accounting.completed));
  const latency = (name: "ttftMs" | "tpotMs" | "itlMs" | "e2eMs"): BaselinePercentiles =>
    percentiles(cells.map((cell) => cell[name]));
  return {
    arm: first.arm,
    policy: first.policy,
    level: first.level,
    ttftMs: latency("ttftMs"),
    tpotMs: latency("tpotMs"),
    itlMs: latency("itlMs"),
    e2eMs: latency("e2eMs"),
    hitShare: mean(cells.map(({ cache }) => (cache.observed === UNAVAILABLE ? null : cache.observed))),
    requestsPerSecond: mean(cells.map(({ requestsPerSecond }) => requestsPerSecond)),
    outputTokensPerSecond: mean(cells.map(({ outputTokensPerSecond }) => outputTokensPerSecond)),
    errorShare: offered === 0 ? 0 : (offered - completed) / offered,
    offered,
    runs: cells.length,
    madeBy: { source: 0, cells: cells.map(({ id }) => id) },
  };
}

function percentiles(summaries: readonly PopulationSummaries[]): BaselinePercentiles {
  const of = (name: "p50" | "p95" | "p99"): number | null => mean(summaries.map(({ completed }) => completed[name]));
  return { p50: of("p50"), p95: of("p95"), p99: of("p99") };
}

/** Null as soon as one run could not tell. */
function mean(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length < values.length || known.length === 0 ? null : sum(known) / known.length;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
