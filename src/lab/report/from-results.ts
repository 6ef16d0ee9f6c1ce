import { NS_PER_SECOND } from "../../core/clock.ts";
import { STATISTICS, shareOf } from "../../measure/summary.ts";
import type { PopulationSummaries } from "../../measure/summary.ts";
import type { CellResult } from "../results/types.ts";
import { type CellLatency, LATENCIES, type LatencyName, type ReportCell } from "./cell.ts";
import { readingsOf } from "./reading.ts";

/** A cell of results.json as the report has it. */
export function cellOfResult(result: CellResult, source: number, arm: string = result.arm): ReportCell {
  const { window } = result;
  const latencies = LATENCIES.map((name) => [name, latencyOf(result[name])] as const);
  return {
    id: `${source}:${result.id}`,
    source,
    recordsId: result.id,
    arm,
    policy: result.policy,
    level: result.level,
    run: result.run,
    repeats: [],
    seed: result.seed,
    accounting: result.accounting,
    unsentRows: result.unsentRows,
    ranOutSeconds: result.ranOutSeconds,
    refusals: result.refusals,
    latencies: Object.fromEntries(latencies) as Record<LatencyName, CellLatency>,
    rates: {
      offeredPerSecond: result.offeredPerSecond,
      requestsPerSecond: result.requestsPerSecond,
      outputTokensPerSecond: result.outputTokensPerSecond,
      requestsPerSecondOverSpan: result.requestsPerSecondOverSpan,
      outputTokensPerSecondOverSpan: result.outputTokensPerSecondOverSpan,
    },
    tokens: {
      promptMean: result.promptTokensMean ?? undefined,
      outputMean: result.outputTokensMean ?? undefined,
      completedPromptMean: undefined,
      lostPromptMean: undefined,
      outputTotal: result.outputTokensMean === null ? undefined : result.outputTokensMean * result.accounting.completed,
    },
    goodputShare: result.accounting.offered === 0 ? undefined : result.goodputShare,
    slo: result.slo.limits,
    cache: result.cache,
    workers: result.workers,
    gpus: [],
    inflightSpread: result.inflightSpread,
    inflightMeanSkew: result.inflightMeanSkew,
    saturated: result.saturated,
    stationarity: result.stationarity,
    scheduleLagMs: result.scheduleLagMs,
    snapshots: result.snapshots,
    snapshotMeans: result.snapshotMeans,
    live: {
      cacheStart: result.cacheStart,
      prompts: result.prompts,
      client: result.client,
      checks: result.checks,
    },
    window: {
      startNs: Math.round(window.startSeconds * NS_PER_SECOND),
      endNs: Math.round(window.endSeconds * NS_PER_SECOND),
      drainNs: Math.round(window.drainSeconds * NS_PER_SECOND),
    },
  };
}

function latencyOf({ completed, offered }: PopulationSummaries): CellLatency {
  return {
    readings: { completed: readingsOf(completed), offered: readingsOf(offered) },
    points: {
      n: completed.n,
      unreached: offered.n - completed.n,
      mean: completed.mean ?? undefined,
      points: STATISTICS.flatMap((name) => {
        const value = completed[name];
        return name === "mean" || value === null ? [] : [[shareOf(name), value] as const];
      }),
    },
  };
}
