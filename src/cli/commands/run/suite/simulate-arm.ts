import { POLICIES } from "../../../../core/policy/registry.ts";
import type { Cell } from "../../../../lab/experiment/cells.ts";
import { runSeeds } from "../../../../lab/experiment/seeds.ts";
import { cellWorkload } from "../../../../lab/experiment/workload.ts";
import { type Bench, perturbedFleet, perturbedSignals, type PlannedRun, planRun } from "../../../../lab/suite/plan.ts";
import { type RunSample, sampleRun } from "../../../../lab/suite/run-sample.ts";
import { type ArmScore, scoreArm } from "../../../../lab/suite/score.ts";
import type { Perturbation, SuiteArm, SuiteCell, SuiteConditions, SuiteSize } from "../../../../lab/suite/types.ts";
import { WindowedSource } from "../../../../lab/suite/windowed-source.ts";
import { simulateFleet } from "../../../../sim/fleet/virtual-fleet.ts";
import { simulatedFleet } from "../simulated-fleet.ts";

/** An arm that is to be run in a cell, and what the cell needs. */
export interface ArmTask {
  readonly bench: Bench;
  readonly cell: SuiteCell;
  readonly size: SuiteSize;
  readonly saturationRps: number;
  readonly suiteSeed: number;
  readonly parts: number;
  readonly conditions: SuiteConditions;
  readonly arm: SuiteArm;
}

/** The knob by which a policy is told wrong speeds; a policy without it starts from none and cannot be wrong. */
const SPEED_PRIOR = "speedPriorFactor";

/** Runs an arm through all runs of a cell. Equal tasks give equal scores. */
export function simulateArm(task: ArmTask): ArmScore {
  const { bench, cell, size, saturationRps, suiteSeed } = task;
  const samples = Array.from({ length: size.runs }, (_, run) =>
    simulateRun(task, planRun(bench, cell, size, saturationRps, suiteSeed, run)),
  );
  return scoreArm(samples, task.parts);
}

function simulateRun({ bench, cell, parts, conditions, arm }: ArmTask, planned: PlannedRun): RunSample {
  const { window } = planned;
  const perturbation = cell.perturbation ?? { name: "none" };
  const twinCell: Cell = {
    id: cell.id,
    arm: {
      name: arm.name,
      policy: arm.policy,
      parameters: perturbedParameters(arm, perturbation),
      admission: { mode: conditions.admission },
    },
    fleet: perturbedFleet(bench, perturbation),
    level: planned.level,
    run: 1,
    seeds: runSeeds({ seed: planned.seed, seeds: {} }, 1),
  };
  const { prefillSpeed = 1, firstWorkerSpeed = 1, routers = 1 } = perturbation;
  const asked = { workload: bench.workload.workload, load: planned.load, warmUpSeconds: 0 };
  const { source } = cellWorkload(asked, twinCell, planned.trace);
  const { records } = simulateFleet({
    ...simulatedFleet(twinCell, perturbedSignals(perturbation), bench.tokensPerSequence, {
      prefillSpeed,
      firstWorkerSpeed,
      routers,
      kvEvents: conditions.kvEvents,
    }),
    source: new WindowedSource(source, window),
    offerUntilNs: window.endNs + window.drainNs,
    drainNs: 0,
    tokenTimes: false,
  });
  return sampleRun(records, window, parts, bench.workload.slo);
}

function perturbedParameters(arm: SuiteArm, { speedPriorFactor }: Perturbation): SuiteArm["parameters"] {
  const definition = POLICIES.find(({ name }) => name === arm.policy);
  if (speedPriorFactor === undefined || definition?.parameters[SPEED_PRIOR] === undefined) return arm.parameters;
  return { ...arm.parameters, [SPEED_PRIOR]: speedPriorFactor };
}
