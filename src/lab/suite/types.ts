import type { AdmissionMode } from "../../core/admission/types.ts";
import type { FleetConfig, LoadConfig, WorkloadConfig } from "../experiment/types.ts";
import type { Slo } from "../../measure/slo.ts";
import type { PolicyParameters } from "../../core/policy/types.ts";

/** A suite file with all defaults in place; docs/guides/policy-suite.md explains every field. */
export interface Suite {
  readonly suite: string;
  readonly about: string;
  readonly seed: number;
  /** What is run in full, and what `--quick` runs. */
  readonly full: SuiteSize;
  readonly quick: SuiteSize;
  /** Shares of round-robin's saturation, from which a size takes its own. */
  readonly loads: readonly number[];
  readonly workers: readonly number[];
  /** Parts of each run's window that are left out in turn to learn the noise. */
  readonly parts: number;
  readonly fleets: Readonly<Record<string, FleetConfig>>;
  readonly workloads: readonly SuiteWorkload[];
  readonly perturbations: readonly Perturbation[];
  /** Perturbed cells per cell of the whole grid (workloads × loads × workers). */
  readonly perturbedShare: number;
  /** Policies that are compared; all that there are unless told. */
  readonly policies?: readonly string[] | undefined;
  /** File with the rivals' best settings, from the folder of this one; one that is not there has none. */
  readonly tunedRivals: string;
  /** How those are searched; without it `--tune` is refused. */
  readonly tuning?: TuningConfig | undefined;
}

/** How much of the grid is run, and how long each cell. */
export interface SuiteSize {
  readonly loads: readonly number[];
  readonly workers: readonly number[];
  /** Numbers of workers for each workload and load. */
  readonly keep: number;
  /** Perturbed cells for each perturbation at most. */
  readonly perturbedEach: number;
  /** Runs of each cell, each with a seed of its own. */
  readonly runs: number;
  /** Requests in the window of a run, at least. */
  readonly requests: number;
}

/** One kind of traffic and the fleet that it is for. */
export interface SuiteWorkload {
  readonly name: string;
  readonly about: string;
  /** Name of one of the suite's fleets. */
  readonly fleet: string;
  readonly workload: WorkloadConfig;
  readonly arrivals?: LoadConfig["arrivals"];
  readonly burstSize?: number | undefined;
  readonly slo: Slo;
  /** Time after which a session that began first is over: warm-up and window last at least that long. */
  readonly sessionSeconds: number;
  /** True if the fleet's own number of workers is run at every load. */
  readonly anchored: boolean;
}

/** One way in which the world is not as believed. */
export interface Perturbation {
  readonly name: string;
  /** Workloads that it is tried on; all unless told. */
  readonly workloads?: readonly string[] | undefined;
  readonly prefillSpeed?: number | undefined;
  readonly kvPool?: number | undefined;
  readonly kvEventDelayMs?: number | undefined;
  readonly kvEventLossShare?: number | undefined;
  readonly firstWorkerSpeed?: number | undefined;
  /** What policies that start from assumed speeds assume, as a factor on what they would assume otherwise. */
  readonly speedPriorFactor?: number | undefined;
  readonly routers?: number | undefined;
}

/** How rivals are searched for their best settings. */
export interface TuningConfig {
  readonly cells: number;
  readonly runs: number;
  readonly requests: number;
  /** Settings drawn for each rival, and how many of them are tried on all cells. */
  readonly settings: number;
  readonly finalists: number;
  readonly rivals: readonly TunedRival[];
}

/** A rival's knobs and the values that each may take. */
export interface TunedRival {
  readonly policy: string;
  /** One or several sets of knobs, for policies whose knobs exclude each other. */
  readonly grids: readonly Readonly<Record<string, readonly (number | string)[]>>[];
}

/** A policy with its settings, as one line of the league. */
export interface SuiteArm {
  readonly name: string;
  readonly policy: string;
  readonly parameters: PolicyParameters;
}

/** One cell: the same requests for every arm. */
export interface SuiteCell {
  readonly id: string;
  readonly workload: string;
  readonly load: number;
  readonly workers: number;
  readonly perturbation?: Perturbation | undefined;
}

/** What is the same for all arms of a run, so that policies are compared and nothing else. */
export interface SuiteConditions {
  readonly admission: AdmissionMode;
  /** False where engines tell nothing of their caches. */
  readonly kvEvents: boolean;
}
