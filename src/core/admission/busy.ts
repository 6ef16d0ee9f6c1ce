import type { LoadColumns } from "../replica.ts";
import type { WatermarkName, Watermarks } from "./types.ts";

/** A watermark that a replica has reached. */
export interface BusyKnob {
  readonly knob: WatermarkName;
  /** What was compared, in the unit of the threshold. */
  readonly value: number;
  readonly threshold: number;
  /** The quantity behind `value`: requests, tokens or blocks. */
  readonly used: number;
  /** What it is a fraction of; 1 where the threshold is absolute. */
  readonly capacity: number;
}

/** Whether a replica has reached any watermark; the variant without a reason, for every candidate of every decision. */
export function isBusy(replica: number, columns: LoadColumns, watermarks: Watermarks): boolean {
  const { batchSlotsFraction, prefillTokens, prefillStepFraction, kvBlocksFraction } = watermarks;
  if (batchSlotsFraction !== undefined) {
    if (reaches(columns.inFlight[replica], columns.batchSlots[replica], batchSlotsFraction)) return true;
  }
  if (prefillTokens !== undefined && reaches(columns.pendingPrefillTokens[replica], 1, prefillTokens)) return true;
  if (prefillStepFraction !== undefined) {
    if (reaches(columns.pendingPrefillTokens[replica], columns.stepTokens[replica], prefillStepFraction)) return true;
  }
  if (kvBlocksFraction !== undefined) {
    if (reaches(columns.newBlocks[replica], columns.kvBlocks[replica], kvBlocksFraction)) return true;
  }
  return false;
}

/** All watermarks that a replica has reached, in the order of `Watermarks`. */
export function busyKnobs(replica: number, columns: LoadColumns, watermarks: Watermarks): BusyKnob[] {
  const knobs: BusyKnob[] = [];
  const check = (knob: WatermarkName, used: number, capacity: number): void => {
    const threshold = watermarks[knob];
    if (threshold === undefined || !reaches(used, capacity, threshold)) return;
    knobs.push({ knob, value: used / capacity, threshold, used, capacity });
  };
  check("batchSlotsFraction", columns.inFlight[replica], columns.batchSlots[replica]);
  check("prefillTokens", columns.pendingPrefillTokens[replica], 1);
  check("prefillStepFraction", columns.pendingPrefillTokens[replica], columns.stepTokens[replica]);
  check("kvBlocksFraction", columns.newBlocks[replica], columns.kvBlocks[replica]);
  return knobs;
}

/** The watermark that a replica has passed the furthest, or undefined if it is not busy. */
export function busyReason(replica: number, columns: LoadColumns, watermarks: Watermarks): BusyKnob | undefined {
  let furthest: BusyKnob | undefined;
  for (const knob of busyKnobs(replica, columns, watermarks)) {
    if (furthest === undefined || pressure(knob) > pressure(furthest)) furthest = knob;
  }
  return furthest;
}

/** How far a watermark is passed, comparable between watermarks: 1 is just reached. */
export function pressure(knob: BusyKnob): number {
  return knob.threshold > 0 ? knob.value / knob.threshold : Number.POSITIVE_INFINITY;
}

// A capacity of 0 is unknown, and what is unknown cannot be exceeded.
function reaches(used: number, capacity: number, threshold: number): boolean {
  return capacity > 0 && used >= threshold * capacity;
}
