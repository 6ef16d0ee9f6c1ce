import type { Bench } from "../../../../lab/suite/plan.ts";
import type { ArmScore } from "../../../../lab/suite/score.ts";
import type { SuiteArm, SuiteCell, SuiteConditions, SuiteSize } from "../../../../lab/suite/types.ts";
import { saturationRps } from "./saturation.ts";
import { simulateArm } from "./simulate-arm.ts";

/** Round-robin's saturation of a workload on so many workers. */
export interface SaturationJob {
  readonly kind: "saturation";
  readonly key: string;
  readonly bench: number;
  readonly workers: number;
}

/** An arm in a cell. */
export interface ArmJob {
  readonly kind: "arm";
  readonly key: string;
  readonly bench: number;
  readonly cell: SuiteCell;
  readonly arm: SuiteArm;
  readonly saturationRps: number;
}

/** What a thread needs once, before any job. */
export interface SuiteJobSetting {
  readonly jobs: readonly (SaturationJob | ArmJob)[];
  readonly benches: readonly Bench[];
  readonly size: SuiteSize;
  readonly suiteSeed: number;
  readonly parts: number;
  readonly conditions: SuiteConditions;
}

/** A job that is done; the value of one kind or the other. */
export interface FinishedJob {
  readonly key: string;
  /** What it was, for people. */
  readonly label: string;
  readonly value: number | ArmScore;
  /** Wall time. */
  readonly seconds: number;
}

/** Runs one job. */
export function runSuiteJob(setting: SuiteJobSetting, index: number): FinishedJob {
  const startedMs = performance.now();
  const job = setting.jobs[index];
  const bench = setting.benches[job.bench];
  const { size, suiteSeed, parts, conditions } = setting;
  const value =
    job.kind === "saturation"
      ? saturationRps(bench, job.workers, suiteSeed)
      : simulateArm({ ...job, bench, size, suiteSeed, parts, conditions });
  const label =
    job.kind === "saturation"
      ? `saturation of ${bench.workload.name} on ${job.workers}`
      : `${job.cell.id} ${job.arm.name}`;
  return { key: job.key, label, value, seconds: (performance.now() - startedMs) / 1000 };
}
