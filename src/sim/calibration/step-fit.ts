import { WarmpathError } from "../../core/errors.ts";
import { findGpu, type GpuSpec } from "../timing/gpus.ts";
import { type StepShape, StepTimer, type TimingConstants } from "../timing/step-timer.ts";
import { type FitBound, fitWithinBounds } from "./bounded-fit.ts";
import type { StepRow } from "./step-row.ts";

/** A measured step beside the formula's answer. */
export interface StepPrediction {
  readonly row: StepRow;
  readonly predictedMs: number;
  readonly errorPct: number;
  /** Whether the constants were fitted on this row. */
  readonly fitted: boolean;
}

/** Where the search starts; graphs leave no host time, and one GPU no all-reduce. */
const START: TimingConstants = {
  computeEfficiency: 0.65,
  weightEfficiency: 0.8,
  linearFloorNs: 0,
  linearFactorTo32: 1,
  prefillAttentionEfficiency: 0.35,
  kvReadEfficiencyBf16: 0.75,
  kvReadEfficiencyFp8: 0.6,
  prefillAttentionFixedNs: 10_000,
  decodeAttentionFixedNs: 10_000,
  layerFixedNs: 15_000,
  allReduceFixedNs: 0,
  allReduceTwoPhaseNs: 0,
  allReduceEfficiency: 0.6,
  hostStepNs: 0,
  hostSequenceNs: 0,
  eagerDecodeLayerNs: 0,
  eagerPrefillLayerNs: 0,
};

const BOUNDS: readonly FitBound<keyof TimingConstants>[] = [
  { name: "computeEfficiency", low: 0.4, high: 0.85 },
  { name: "weightEfficiency", low: 0.5, high: 0.95 },
  { name: "kvReadEfficiencyBf16", low: 0.4, high: 0.95 },
  { name: "prefillAttentionEfficiency", low: 0.2, high: 0.8 },
  { name: "prefillAttentionFixedNs", low: 0, high: 60_000 },
  { name: "decodeAttentionFixedNs", low: 0, high: 60_000 },
  { name: "layerFixedNs", low: 0, high: 60_000 },
  { name: "hostStepNs", low: 0, high: 500_000 },
];

/** The formula's duration of a measured step. */
function stepMs(row: StepRow, constants: TimingConstants, gpu: GpuSpec): number {
  const step: StepShape = row.step;
  return (
    new StepTimer({ model: row.model, gpu, tensorParallel: 1, weights: row.weights, kv: row.kv, constants }).stepPs(
      step,
    ) / 1e9
  );
}

/** What a file of measured steps says about the formula. */
export interface StepFit {
  /** By weight format. */
  readonly constants: Readonly<Record<string, TimingConstants>>;
  /** The constants that the fit was free to move. */
  readonly free: readonly (keyof TimingConstants)[];
  readonly predictions: readonly StepPrediction[];
  /** Shortest time per layer without CUDA graphs. */
  readonly eager: readonly { readonly model: string; readonly layerNs: number; readonly n: number }[];
}

const ERROR_CAP = 0.3;

/**
 * Fits the formula to some of the whole steps in a CUDA graph, by weight format, and predicts all of them. By default it
 * sees every other step.
 */
export function fitSteps(
  rows: readonly StepRow[],
  gpuName: string,
  isSeen: (row: StepRow) => boolean = (row) => row.index % 2 === 0,
): StepFit {
  const gpu = findGpu(gpuName);
  if (gpu === undefined) throw new WarmpathError("WP_INVALID_INPUT", `the GPU ${gpuName} is not modelled`);
  const constants: Record<string, TimingConstants> = {};
  const predictions: StepPrediction[] = [];
  for (const weights of ["bf16", "fp8"] as const) {
    const own = rows.filter(
      (row) => row.weights === weights && row.mode === "graph" && !row.kind.startsWith("sustained"),
    );
    const seen = own.filter(isSeen);
    if (seen.length === 0) continue;
    const { values } = fitWithinBounds(START, BOUNDS, (candidate) => {
      let loss = 0;
      for (const row of seen)
        loss += Math.min(ERROR_CAP, Math.abs(Math.log(stepMs(row, candidate, gpu) / row.measuredMs)));
      return loss / seen.length;
    });
    constants[weights] = values;
    for (const row of own) {
      const predictedMs = stepMs(row, values, gpu);
      const errorPct = (predictedMs / row.measuredMs - 1) * 100;
      predictions.push({ row, predictedMs, errorPct, fitted: isSeen(row) });
    }
  }
  return { constants, free: BOUNDS.map((bound) => bound.name), predictions, eager: eagerFloors(rows) };
}

function eagerFloors(rows: readonly StepRow[]): StepFit["eager"] {
  const eager = rows.filter((row) => row.mode === "eager");
  return [...new Set(eager.map((row) => row.model.name))].map((model) => {
    const own = eager.filter((row) => row.model.name === model);
    const layerNs = Math.min(...own.map((row) => (row.measuredMs * 1e6) / row.model.layers));
    return { model, layerNs, n: own.length };
  });
}
