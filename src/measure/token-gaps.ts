import type { Nanoseconds } from "../core/clock.ts";
import { type GapCounts, RUN_NUMBERS, type TokenTimes } from "../core/request-record.ts";
import type { DurationHistogram } from "./duration-histogram.ts";

const PS_PER_NS = 1000;

/** How many chunks of content arrived; one more than there are gaps. */
export function chunkCount(times: TokenTimes): number {
  if (times.form === "chunks") return times.timesNs.length;
  let count = 0;
  if (times.form === "runs") {
    for (let at = 4; at < times.runs.length; at += RUN_NUMBERS) count += times.runs[at];
    return count;
  }
  for (let i = 1; i < times.gaps.bucketCounts.length; i += 2) count += times.gaps.bucketCounts[i];
  return count + 1;
}

/** Adds the gap between each two consecutive chunks to a histogram, a run of steps at a time. */
export function addGaps(times: TokenTimes, into: DurationHistogram): void {
  switch (times.form) {
    case "chunks":
      return into.addDifferences(times.timesNs);
    case "runs":
      return addRunGaps(times.runs, into);
    case "gaps":
      return into.addGapCounts(times.gaps);
  }
}

/**
 * When each chunk arrived; for figures and tests, since statistics do not need it. Undefined where only gaps were kept.
 */
export function chunkTimesNs(times: TokenTimes): Float64Array | undefined {
  if (times.form === "chunks") return times.timesNs;
  if (times.form === "gaps") return undefined;
  const { runs } = times;
  const expanded = new Float64Array(chunkCount(times));
  let next = 0;
  for (let at = 0; at < runs.length; at += RUN_NUMBERS) {
    for (let step = 1; step <= runs[at + 4]; step++) expanded[next++] = runs[at] + stampNs(runs, at, step);
  }
  return expanded;
}

/** A request's gaps in the form that files keep; `scratch` is emptied first, and saves allocating one per request. */
export function gapCounts(times: TokenTimes, scratch: DurationHistogram): GapCounts {
  if (times.form === "gaps") return times.gaps;
  scratch.clear();
  addGaps(times, scratch);
  return scratch.toGapCounts();
}

function addRunGaps(runs: Float64Array, into: DurationHistogram): void {
  let firstNs = Number.NaN;
  let previousNs = Number.NaN;
  let previousRemainderPs = 0;
  for (let at = 0; at < runs.length; at += RUN_NUMBERS) {
    const startNs = runs[at];
    const remainderPs = runs[at + 1];
    const firstPs = runs[at + 2];
    const growthPs = runs[at + 3];
    const steps = runs[at + 4];
    if (steps === 0) continue;
    const pausePs = (startNs - previousNs) * PS_PER_NS + remainderPs - previousRemainderPs;
    if (pausePs === 0) {
      into.addProgression(firstPs, growthPs, steps);
    } else {
      // Either the very first chunk, or the engine did something else in between and the gap is longer than the step.
      if (Number.isNaN(previousNs)) firstNs = startNs + stampNs(runs, at, 1);
      else into.addProgression(firstPs + pausePs, 0, 1);
      if (steps > 1) into.addProgression(firstPs + growthPs, growthPs, steps - 1);
    }
    const endPs = remainderPs + durationPs(runs, at, steps);
    const endNs = Math.floor(endPs / PS_PER_NS);
    previousNs = startNs + endNs;
    previousRemainderPs = endPs - endNs * PS_PER_NS;
  }
  // All gaps together last from the first chunk to the last.
  if (previousNs > firstNs) into.addSum(previousNs - firstNs);
}

/** When the chunk of a step arrives, counted from the start of its run. */
function stampNs(runs: Float64Array, at: number, step: number): Nanoseconds {
  return Math.floor((runs[at + 1] + durationPs(runs, at, step)) / PS_PER_NS);
}

function durationPs(runs: Float64Array, at: number, steps: number): number {
  return steps * runs[at + 2] + runs[at + 3] * ((steps * (steps - 1)) / 2);
}
