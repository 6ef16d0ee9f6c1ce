import { z } from "zod";
import { ACCOUNTS } from "../../core/accounts.ts";
import { UNAVAILABLE } from "../../core/request-record.ts";
import { type CellResult, type Provenance, RESULTS_SCHEMA_VERSION, type ResultsFile } from "./types.ts";

/**
 * The form of the files on disk. Keys are written in the order in which they stand here, so that equal results are
 * equal bytes. Cells may have keys that are not here, from a later version; they are kept.
 */
const count = z.int().min(0);
const amount = z.number().min(0);
const share = z.number().min(0).max(1);
const orUnavailable = (inner: z.ZodNumber): z.ZodType<number | "unavailable"> =>
  z.union([inner, z.literal(UNAVAILABLE)], { error: 'must be a number of the right size or "unavailable"' });
const orNull = z.union([z.number(), z.null()], { error: "must be a number or null" });
const state = z.enum(["ok", "not-reached", "too-few"]);

const summary = z
  .object({
    n: count,
    mean: orNull,
    p50: orNull,
    p90: orNull,
    p95: orNull,
    p99: orNull,
    states: z.object({ mean: state, p50: state, p90: state, p95: state, p99: state }),
  })
  .check(({ value, issues }) => {
    for (const name of ["mean", "p50", "p90", "p95", "p99"] as const) {
      if ((value[name] !== null) === (value.states[name] === "ok")) continue;
      const message = `must be a number exactly if its state is ok, and the state is ${value.states[name]}`;
      issues.push({ code: "custom", message, path: [name], input: value[name] });
    }
  });
const populations = z.object({ completed: summary, offered: summary });
const latencies = { ttftMs: populations, tpotMs: populations, itlMs: populations, e2eMs: populations };
const cacheShares = {
  predicted: orUnavailable(share),
  observed: orUnavailable(share),
  predictedRequests: count,
  observedRequests: count,
};

const accounting = z
  .object({
    offered: count,
    completed: count,
    shed: count,
    rejected: count,
    failed: count,
    timedOut: count,
    cancelled: count,
    unfinished: count,
  })
  .check(({ value, issues }) => {
    let sum = 0;
    for (const account of ACCOUNTS) sum += value[account];
    if (sum === value.offered) return;
    const message = `must add up: ${value.offered} offered, ${sum} in all accounts`;
    issues.push({ code: "custom", message, path: [], input: value });
  });

const worker = z.object({
  worker: z.string().min(1),
  requests: orUnavailable(count),
  share: orUnavailable(share),
  busyShare: orUnavailable(share),
  inFlightMean: orUnavailable(amount),
  inFlightMax: orUnavailable(count),
  queueMax: orUnavailable(count),
  kvOccupancy: orUnavailable(share),
  kvOccupancyMax: orUnavailable(share),
  evictions: orUnavailable(count),
  preemptions: orUnavailable(count),
  draftAcceptance: orUnavailable(share),
  sampled: z
    .object({
      samples: count,
      busyShareMin: orUnavailable(share),
      busyShareMax: orUnavailable(share),
      memoryUsedBytes: orUnavailable(amount),
      memoryTotalBytes: orUnavailable(amount),
      powerWatts: orUnavailable(amount),
      restarts: orUnavailable(count),
    })
    .optional(),
});

const check = z.object({
  code: z.string().min(1),
  status: z.enum(["passed", "failed", "unavailable"]),
  detail: z.string(),
});

/** What only cells of live targets have. */
const liveFacts = {
  warmUp: z.object({ seconds: amount, requests: count }).optional(),
  cacheStart: z
    .object({
      state: z.enum(["cold", "primed", "carried-over"]),
      enforcedBy: z.enum(["restart", "reset", "hook", "pass", "load", "nothing"]),
    })
    .optional(),
  prompts: z.object({ requests: count, digest: z.string().min(1), sentBefore: count, equalToBefore: count }).optional(),
  client: z
    .object({
      verdict: z.enum(["ok", "bottleneck", "unknown"]),
      reasons: z.array(z.string()),
      scheduleLagP99Ms: amount,
      loopDelayP99Ms: amount,
      loopUtilisation: share,
    })
    .optional(),
  checks: z.array(check).optional(),
  voided: z.array(z.string()).optional(),
};

const stationarity = z.object({
  saturated: z.boolean(),
  reasons: z.array(z.string()),
  ttftByDecileMs: z.array(orNull),
  ttftTrend: orNull,
  ttftGrowth: orNull,
  backlogMean: amount,
  backlogTrend: z.number(),
  backlogSlopePerSecond: z.number(),
  lateServedRatio: orNull,
  refusedShare: share,
});

/** One entry of `cells[]`. */
export const cellSchema: z.ZodType<CellResult> = z.looseObject({
  id: z.string().min(1),
  arm: z.string().min(1),
  policy: z.string().min(1),
  level: z.object({
    concurrency: z.int().min(1).optional(),
    rateRps: z.number().gt(0).optional(),
    speed: z.number().gt(0).optional(),
    workers: z.int().min(1),
  }),
  run: count,
  seed: count,
  window: z.object({ startSeconds: z.number(), endSeconds: z.number(), drainSeconds: amount }),
  accounting,
  unsentRows: count.optional(),
  ranOutSeconds: amount.optional(),
  ...latencies,
  wireTtftMs: populations,
  scheduleLagMs: summary,
  requestsWithoutGaps: count,
  outputTokensPerSecond: amount,
  requestsPerSecond: amount,
  offeredPerSecond: amount,
  requestsPerSecondOverSpan: amount,
  outputTokensPerSecondOverSpan: amount,
  promptTokensMean: orNull,
  outputTokensMean: orNull,
  goodputShare: share,
  slo: z.object({
    limits: z.object({ ttftMs: amount.optional(), tpotMs: amount.optional(), e2eMs: amount.optional() }),
    verdict: z.enum(["met", "missed", "unknown"]),
  }),
  cache: z.object({
    ceiling: orUnavailable(share),
    ...cacheShares,
    predictedSource: z.literal("gateway-metrics").optional(),
    observedSource: z.enum(["usage", "dynamo_frontend_cached_tokens"]).optional(),
  }),
  workers: z.array(worker),
  inflightSpread: z.union([z.object({ mean: amount, p95: amount, max: count }), z.literal(UNAVAILABLE)], {
    error: 'must be an object with mean, p95 and max, or "unavailable"',
  }),
  inflightMeanSkew: orUnavailable(amount),
  saturated: z.boolean(),
  stationarity,
  refusals: z.array(
    z.object({
      account: z.enum(["shed", "rejected", "failed", "timedOut", "cancelled", "unfinished"]),
      status: orNull,
      code: z.union(
        [z.enum(["overloaded", "queue-full", "deadline", "queue-timeout", "no-eligible-worker"]), z.null()],
        {
          error: "must be a code of a shed reason or null",
        },
      ),
      message: z.string(),
      count,
    }),
  ),
  snapshots: z.array(
    z.object({
      startSeconds: z.number(),
      endSeconds: z.number(),
      ...latencies,
      requestsPerSecond: amount,
      outputTokensPerSecond: amount,
      goodputShare: share,
      cache: z.object(cacheShares),
    }),
  ),
  snapshotMeans: z.object(latencies).optional(),
  ...liveFacts,
});

const schemaVersion = z.literal(RESULTS_SCHEMA_VERSION);
const jsonObject = z.record(z.string(), z.json());

const comparability = z.object({
  verdict: z.enum(["comparable", "not-comparable"]),
  declared: z.array(z.string()),
  reasons: z.array(z.string()),
  differences: z.array(
    z.object({
      arm: z.string(),
      against: z.string(),
      setting: z.string(),
      value: z.string(),
      againstValue: z.string(),
      isDeclared: z.boolean(),
    }),
  ),
});

/** The frame of results.json; its cells are checked one by one, so that one bad cell does not take the others along. */
export const resultsFrameSchema: z.ZodType<Omit<ResultsFile, "cells"> & { readonly cells: readonly unknown[] }> =
  z.looseObject({
    schemaVersion,
    experiment: z.string().min(1),
    target: z.string().min(1).optional(),
    config: jsonObject,
    comparability: comparability.optional(),
    arms: z
      .array(z.object({ arm: z.string(), checks: z.array(check), settings: z.record(z.string(), z.string()) }))
      .optional(),
    cells: z.array(z.unknown()),
  });

export const provenanceSchema: z.ZodType<Provenance> = z.looseObject({
  schemaVersion,
  host: jsonObject,
  versions: z.record(z.string(), z.string()),
  startedAt: z.iso.datetime(),
  finishedAt: z.union([z.iso.datetime(), z.null()], { error: "must be a date and time in UTC or null" }),
  command: z.string(),
  experimentFolder: z.string().optional(),
  cellSeconds: z.record(z.string(), amount),
  order: z.array(z.string()).optional(),
  resumed: z.array(z.object({ at: z.iso.datetime(), finishedCells: count })).optional(),
});
