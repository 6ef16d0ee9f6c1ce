import { hashString } from "../../core/rng.ts";
import { CONSTANTS, type ConstantsCell } from "../timing/constants.ts";
import type { TimingConstants } from "../timing/step-timer.ts";
import { type FitBound, type FitOutcome, fitWithinBounds } from "./bounded-fit.ts";
import { predictRow } from "./prediction.ts";
import { settingsOf } from "./row-settings.ts";
import type { SiliconRow } from "./silicon-row.ts";

/** Halves of any measurements file, by a hash of the row's id: one to fit on, one to judge by. */
export type RowSubset = "calibration" | "held-out" | "all";

/** Whether a row belongs to a subset. */
export function isInSubset(id: string, subset: RowSubset): boolean {
  return subset === "all" || (hashString(id) % 2 === 0) === (subset === "calibration");
}

/**
 * The constants a fit may move. Ranges: kernel tables for the efficiencies, with room below for end-to-end losses;
 * measured launch and all-reduce times for the rest.
 */
export const FIT_BOUNDS: readonly FitBound<keyof TimingConstants>[] = [
  { name: "weightEfficiency", low: 0.6, high: 0.9 },
  { name: "computeEfficiency", low: 0.4, high: 0.75 },
  { name: "kvReadEfficiencyBf16", low: 0.6, high: 0.95 },
  { name: "kvReadEfficiencyFp8", low: 0.5, high: 0.95 },
  { name: "layerFixedNs", low: 2000, high: 30_000 },
  { name: "linearFloorNs", low: 0, high: 8000 },
  { name: "allReduceFixedNs", low: 2000, high: 25_000 },
  { name: "allReduceTwoPhaseNs", low: 5000, high: 60_000 },
  { name: "eagerPrefillLayerNs", low: 0, high: 1_500_000 },
  { name: "linearFactorTo32", low: 1, high: 1.25 },
  { name: "hostStepNs", low: 0, high: 2_000_000 },
  { name: "hostSequenceNs", low: 0, high: 30_000 },
];

const TTFT_WEIGHT = 0.5;
/** Beyond this a row is an outlier of the file, and pulling towards it would cost all others. */
const ERROR_CAP = 0.3;

/** What fitting one cell has found, and on how many rows. */
export interface CellFit extends FitOutcome<TimingConstants> {
  readonly rows: number;
}

/** Fits one cell on rows of its own; rows of other cells are ignored. */
export function fitCell(cell: ConstantsCell, rows: readonly SiliconRow[]): CellFit | undefined {
  const own = rows.filter((row) => {
    const settings = settingsOf(row);
    return typeof settings !== "string" && settings.cell === cell;
  });
  if (own.length === 0) return undefined;
  const outcome = fitWithinBounds(cell.constants, FIT_BOUNDS, (constants, worthless) => {
    const cells = CONSTANTS.map((other) => (other === cell ? { ...cell, constants } : other));
    let loss = 0;
    for (const row of own) {
      if (loss >= worthless * own.length) break;
      const seen = predictRow(row, cells);
      if (!seen.covered) continue;
      loss += Math.min(ERROR_CAP, Math.abs(Math.log(seen.tpotMs / row.tpotMs)));
      if (seen.documentedClient && !seen.ttftSaturated) {
        loss += TTFT_WEIGHT * Math.min(ERROR_CAP, Math.abs(Math.log(seen.ttftMs / row.ttftMs)));
      }
    }
    return loss / own.length;
  });
  return { ...outcome, rows: own.length };
}
