/**
 * One thin line through the whole, in virtual time: the same conversations under two policies, the same router that serves
 * live traffic, and results.json of it on standard output. Run with `npx tsx examples/slice.ts`.
 */
import { NS_PER_MS, NS_PER_SECOND } from "../src/core/clock.ts";
import { createPolicy } from "../src/core/policy/registry.ts";
import { UNAVAILABLE } from "../src/core/request-record.ts";
import { Router } from "../src/core/router.ts";
import { buildCell } from "../src/lab/results/build-cell.ts";
import { serialiseResults } from "../src/lab/results/results-json.ts";
import { type CellResult, RESULTS_SCHEMA_VERSION, type WorkerStats } from "../src/lab/results/types.ts";
import { ClosedLoop } from "../src/workload/closed-loop.ts";
import { conversations } from "./slice/conversations.ts";
import { VirtualFleet, type VirtualRun } from "./slice/virtual-fleet.ts";

const CONCURRENCY = 12;
const SESSIONS = 40;
const FLEET = {
  workers: 4,
  blockTokens: 16,
  kvBlocks: 2000,
  batchSlots: 16,
  prefillUsPerToken: 300,
  decodeMsPerToken: 10,
  eventDelayNs: 5 * NS_PER_MS,
} as const;

/** One arm of the slice. */
export interface SliceArm {
  readonly cell: CellResult;
  readonly run: VirtualRun;
  readonly router: Router;
}

/** Runs the slice's conversations under a policy. */
export function runArm(policy: string, seed: number): SliceArm {
  const { workers, blockTokens } = FLEET;
  const router = new Router(createPolicy(policy), { blockTokens, maxReplicas: workers, maxBlocks: 16_384, seed });
  const source = new ClosedLoop(conversations(SESSIONS, seed), { concurrency: CONCURRENCY, rampNs: NS_PER_SECOND });
  const run = new VirtualFleet(router, source, { ...FLEET, seed }).run();
  const cell = buildCell({
    arm: policy,
    policy,
    level: { concurrency: CONCURRENCY, workers },
    run: 1,
    seed,
    records: run.records,
    window: { startNs: 0, endNs: run.endNs, drainNs: 0 },
    slo: { ttftMs: 500 },
    snapshots: 0,
    workers: Array.from({ length: workers }, (_, i) => unmeasured(`worker-${i + 1}`)),
    cacheCeiling: run.cacheCeiling,
    offered: run.accounting.offered,
  });
  return { cell, run, router };
}

/** The text of results.json for some arms. */
export function resultsText(cells: readonly CellResult[]): string {
  const config = { fleet: FLEET, concurrency: CONCURRENCY, sessions: SESSIONS };
  return serialiseResults({ schemaVersion: RESULTS_SCHEMA_VERSION, experiment: "slice", config, cells });
}

/** The engine of the slice keeps no statistics of its own. */
function unmeasured(worker: string): WorkerStats {
  return {
    worker,
    busyShare: UNAVAILABLE,
    queueMax: UNAVAILABLE,
    kvOccupancy: UNAVAILABLE,
    kvOccupancyMax: UNAVAILABLE,
    evictions: UNAVAILABLE,
    preemptions: UNAVAILABLE,
    draftAcceptance: UNAVAILABLE,
  };
}

if (process.argv[1] === import.meta.filename) {
  process.stdout.write(resultsText(["round-robin", "kv-cost"].map((policy) => runArm(policy, 1).cell)));
}
