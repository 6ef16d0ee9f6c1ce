import { NS_PER_SECOND } from "../../../../core/clock.ts";
import { fleetMemory } from "../../../../lab/experiment/memory.ts";
import { STANDARD_SIGNALS } from "../../../../lab/experiment/schema.ts";
import { runSeeds } from "../../../../lab/experiment/seeds.ts";
import { cellWorkload, type PreparedTrace } from "../../../../lab/experiment/workload.ts";
import type { Bench } from "../../../../lab/suite/plan.ts";
import { LimitedSource } from "../../../../lab/suite/windowed-source.ts";
import { simulateFleet } from "../../../../sim/fleet/virtual-fleet.ts";
import { tileRows } from "../../../../workload/trace/transform.ts";
import { simulatedFleet, slotsOf } from "../simulated-fleet.ts";

/** Sessions under way per sequence that the fleet can decode at once: a queue stands before every worker. */
const OVERLOAD = 2;
/** Requests of the run per session under way: half of them are served with the queue at its full length. */
const ROUNDS = 4;
const FEWEST_REQUESTS = 800;

/**
 * Requests per second that saturate round-robin: what it serves in a closed loop of twice as many sessions as the fleet
 * can decode at once, in the middle of the run. A closed loop keeps the mix of turns what it is in steady traffic, which an
 * overloaded open loop does not: there ever more first turns stand before the later ones.
 */
export function saturationRps(bench: Bench, workers: number, seed: number): number {
  const { fleet, tokensPerSequence, workload } = bench;
  const fit = fleetMemory(fleet, tokensPerSequence).poolTokens / tokensPerSequence;
  const concurrency = Math.ceil(OVERLOAD * workers * Math.min(slotsOf(fleet), Math.max(1, fit)));
  const requests = Math.max(FEWEST_REQUESTS, ROUNDS * concurrency);
  const cell = {
    id: `${workload.name}/saturation/workers-${workers}`,
    arm: { name: "round-robin", policy: "round-robin", parameters: {}, admission: { mode: "engine" as const } },
    fleet,
    level: { concurrency, workers },
    run: 1,
    seeds: runSeeds({ seed, seeds: {} }, 1),
  };
  const asked = { workload: workload.workload, load: { concurrency: [concurrency] }, warmUpSeconds: 0 };
  const { source } = cellWorkload(asked, cell, longEnough(bench.trace, requests));
  const { records } = simulateFleet({
    ...simulatedFleet(cell, STANDARD_SIGNALS, tokensPerSequence),
    source: new LimitedSource(source, requests),
    tokenTimes: false,
  });
  const ends = Float64Array.from(records.flatMap(({ endNs }) => endNs ?? [])).sort();
  const from = Math.floor(ends.length / 4);
  const to = Math.floor((3 * ends.length) / 4);
  return ((to - from) * NS_PER_SECOND) / (ends[to] - ends[from]);
}

/** A short trace is repeated, with blocks of its own in every copy. */
function longEnough(trace: PreparedTrace | undefined, requests: number): PreparedTrace | undefined {
  if (trace === undefined || trace.rows.length >= requests) return trace;
  return { ...trace, rows: tileRows(trace.rows, Math.ceil(requests / trace.rows.length)) };
}
