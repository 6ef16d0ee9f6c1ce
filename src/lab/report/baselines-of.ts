import {
  type BaselinePercentiles,
  type BaselinePoint,
  type Baselines,
  BASELINES_SCHEMA_VERSION,
} from "../results/baselines.ts";
import { roundNumbers } from "../results/round-numbers.ts";
import type { ArmAtLevel } from "./groups.ts";
import type { ReportModel } from "./model.ts";
import { middleOf, type Readings, valueOf } from "./reading.ts";

/** What a live page shows beside its own numbers, from measured runs. */
export function baselinesOf({ sources, groups }: ReportModel): Baselines {
  return roundNumbers({
    schemaVersion: BASELINES_SCHEMA_VERSION,
    sources: sources.map(({ experiment, startedAt, command }) => ({
      experiment,
      startedAt: startedAt ?? null,
      command: command ?? null,
    })),
    points: groups.flatMap(pointOf),
  });
}

function pointOf(group: ArmAtLevel): BaselinePoint[] {
  const { arm, policy, level, cells, latencies, rates, accounting, cache } = group;
  if (accounting.offered === 0) return [];
  return [
    {
      arm,
      policy: policy ?? arm,
      level: { ...level, workers: level.workers ?? null },
      ttftMs: percentilesOf(latencies.ttftMs.completed),
      tpotMs: percentilesOf(latencies.tpotMs.completed),
      itlMs: percentilesOf(latencies.itlMs.completed),
      e2eMs: percentilesOf(latencies.e2eMs.completed),
      hitShare: cache.observed ?? null,
      requestsPerSecond: rates.requestsPerSecond ?? rates.requestsPerSecondOverSpan ?? null,
      outputTokensPerSecond: rates.outputTokensPerSecond ?? rates.outputTokensPerSecondOverSpan ?? null,
      errorShare: 1 - accounting.completed / accounting.offered,
      offered: accounting.offered,
      runs: cells.length,
      madeBy: { source: cells[0].source, cells: cells.map(({ recordsId }) => recordsId) },
    },
  ];
}

/** Of runs whose requests are not known, the middle of what they lie between. */
function percentilesOf(readings: Readings): BaselinePercentiles {
  const value = (name: "p50" | "p95" | "p99"): number | null =>
    valueOf(readings[name]) ?? middleOf(readings[name]) ?? null;
  return { p50: value("p50"), p95: value("p95"), p99: value("p99") };
}
