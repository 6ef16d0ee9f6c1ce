import type { ScoredCell } from "../../../../lab/suite/league.ts";
import type { Bench } from "../../../../lab/suite/plan.ts";
import type { Suite, SuiteArm, SuiteCell, SuiteConditions, SuiteSize } from "../../../../lab/suite/types.ts";
import { Progress, progressWriter } from "../progress.ts";
import { runJobs } from "../thread-pool.ts";
import type { JobKeys } from "./job-key.ts";
import type { Journal } from "./journal.ts";
import { type ArmJob, runSuiteJob, type SaturationJob, type SuiteJobSetting } from "./suite-job.ts";

/** Cells to be scored, and where what is finished is kept. */
export interface ScoringRequest {
  readonly suite: Suite;
  readonly size: SuiteSize;
  readonly benches: readonly Bench[];
  readonly cells: readonly SuiteCell[];
  readonly arms: readonly SuiteArm[];
  readonly conditions: SuiteConditions;
  readonly keys: JobKeys;
  readonly journal: Journal;
  readonly threads: number;
  readonly signal: AbortSignal;
}

/** Runs what is not in the journal; gives the cells that every arm has finished. */
export async function scoreCells(request: ScoringRequest): Promise<ScoredCell[]> {
  const { cells, arms, journal } = request;
  const saturations = saturationJobs(request);
  await runMissing(request, [...saturations.values()]);
  const jobs = cells.map((cell) => {
    const saturation = saturations.get(pairOf(cell));
    const saturationRps = saturation === undefined ? undefined : journal.saturationRps(saturation.key);
    if (saturation === undefined || saturationRps === undefined) return undefined;
    return arms.map((arm): ArmJob => armJob(request, cell, arm, saturation.bench, saturationRps));
  });
  await runMissing(
    request,
    jobs.flatMap((ofCell) => ofCell ?? []),
  );
  return cells.flatMap((cell, at) => {
    const ofCell = jobs[at] ?? [];
    const scores = ofCell.flatMap(({ key }) => journal.score(key) ?? []);
    if (ofCell.length === 0 || scores.length < arms.length) return [];
    const { saturationRps } = ofCell[0];
    return { cell, saturationRps, offeredRps: cell.load * saturationRps, scores };
  });
}

function saturationJobs({ suite, benches, cells, keys }: ScoringRequest): Map<string, SaturationJob> {
  const jobs = new Map<string, SaturationJob>();
  for (const cell of cells) {
    const bench = benches.findIndex(({ workload }) => workload.name === cell.workload);
    const { workers } = cell;
    const key = keys.key("round-robin", { saturation: settingOf(benches[bench]), workers, seed: suite.seed });
    jobs.set(pairOf(cell), { kind: "saturation", key, bench, workers });
  }
  return jobs;
}

function armJob(
  { suite, size, benches, conditions, keys }: ScoringRequest,
  cell: SuiteCell,
  arm: SuiteArm,
  bench: number,
  saturationRps: number,
): ArmJob {
  const { policy, parameters } = arm;
  const { runs, requests } = size;
  const asked = { ...settingOf(benches[bench]), cell, saturationRps, runs, requests };
  const key = keys.key(policy, { ...asked, parts: suite.parts, seed: suite.seed, conditions, policy, parameters });
  return { kind: "arm", key, bench, cell, arm, saturationRps };
}

/** What of a bench fixes results; the trace by its provenance, since its rows are many. */
function settingOf({ workload, fleet, trace }: Bench): object {
  const { workload: asked, arrivals, burstSize, slo, sessionSeconds } = workload;
  return { asked, arrivals, burstSize, slo, sessionSeconds, fleet, trace: trace?.provenance };
}

function pairOf({ workload, workers }: SuiteCell): string {
  return `${workload} on ${workers}`;
}

async function runMissing(request: ScoringRequest, all: readonly (SaturationJob | ArmJob)[]): Promise<void> {
  const { suite, size, benches, conditions, journal, threads, signal } = request;
  const jobs = all.filter(({ key }) => !journal.has(key));
  if (jobs.length === 0 || signal.aborted) return;
  const setting: SuiteJobSetting = { jobs, benches, size, suiteSeed: suite.seed, parts: suite.parts, conditions };
  const progress = new Progress(jobs.length, progressWriter(), "jobs");
  const thread = new URL("./suite-thread.js", import.meta.url);
  try {
    await runJobs({ thread, setting, jobs: jobs.length, run: runSuiteJob }, threads, {
      signal,
      finished: (finished) => {
        journal.add(finished);
        progress.finished(finished.label);
      },
    });
  } finally {
    progress.end();
  }
}
