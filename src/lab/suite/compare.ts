import { jackknifeError } from "../../measure/jackknife.ts";
import { studentQuantile, studentTail } from "../../measure/student-t.ts";
import type { ArmScore, JudgedMeasure } from "./score.ts";

/** How one arm stands to another on a measure, the same requests in both; logarithms of ratios, above 0 is slower. */
export interface Comparison {
  readonly logRatio: number;
  /** Half the width of the 95 % interval of `logRatio`. */
  readonly halfWidth: number;
  /** The chance of so much slower, or more, if it were not slower. */
  readonly chanceSlower: number;
}

const INTERVAL_TAIL = 0.025;

/** Compares two arms of a cell, paired. A measure that one of them did not reach is worse than any that was. */
export function compareArms(arm: ArmScore, other: ArmScore, measure: JudgedMeasure, partsPerRun: number): Comparison {
  const logRatio = logOfRatio(arm[measure], other[measure]);
  if (logRatio === 0) return { logRatio, halfWidth: 0, chanceSlower: 1 };
  if (!Number.isFinite(logRatio)) return { logRatio, halfWidth: 0, chanceSlower: logRatio > 0 ? 0 : 1 };
  const without = arm.without[measure].map((value, part) => logOfRatio(value, other.without[measure][part]));
  const error = jackknifeError(without, partsPerRun);
  // Parts of a run depend on each other near saturation: counting them all as independent finds differences between two
  // arms of the same random policy far too often. By runs alone it does not.
  const degrees = Math.max(1, Math.round(without.length / partsPerRun));
  if (error === 0) return { logRatio, halfWidth: 0, chanceSlower: logRatio > 0 ? 0 : 1 };
  return {
    logRatio,
    halfWidth: error * studentQuantile(INTERVAL_TAIL, degrees),
    chanceSlower: error === Infinity ? 1 : studentTail(logRatio / error, degrees),
  };
}

function logOfRatio(value: number | null, other: number | null): number {
  if (value === null) return other === null ? 0 : Infinity;
  return other === null ? -Infinity : Math.log(value / other);
}
