import { WarmpathError } from "../../core/errors.ts";
import { detectGrid } from "../../workload/trace/grid.ts";
import { type TraceProvenance, withStep } from "../../workload/trace/provenance.ts";
import type { TraceRow } from "../../workload/trace/row.ts";
import { filterRows, sliceRows } from "../../workload/trace/transform.ts";
import type { Arm, TraceConfig } from "./types.ts";
import type { PreparedTrace } from "./workload.ts";

/** Filters and slices a trace as the experiment says, and writes down what was done. */
export function prepareTrace(
  { filter, slice }: TraceConfig,
  source: readonly TraceRow[],
  sourceProvenance: TraceProvenance,
): PreparedTrace {
  let rows = source;
  let provenance = sourceProvenance;
  if (filter !== undefined) {
    const bounds = given(filter);
    rows = filterRows(rows, bounds);
    provenance = withStep(provenance, { step: "filter", ...bounds }, rows.length);
  }
  if (slice !== undefined) {
    const bounds = given(slice);
    rows = sliceRows(rows, bounds);
    provenance = withStep(provenance, { step: "slice", keepTimes: false, ...bounds }, rows.length);
  }
  if (rows.length === 0) {
    throw new WarmpathError("WP_INVALID_INPUT", `workload.trace leaves no row of ${provenance.source}`);
  }
  return { rows, provenance };
}

/**
 * Refuses what is to be jittered and has no grid before anything runs, and not when the first cell asks for it, which may be
 * an hour into a run. An arm may have its own setting, and what no arm does needs no grid.
 */
export function checkJitter(
  { jitter }: TraceConfig,
  { rows, provenance }: PreparedTrace,
  arms: readonly Pick<Arm, "name" | "jitter">[],
): void {
  const jittered = arms.find((arm) => arm.jitter ?? jitter);
  if (jittered === undefined || detectGrid(rows) !== undefined) return;
  const setting = jittered.jitter === true ? `jitter of arm ${jittered.name}` : "workload.trace.jitter";
  throw new WarmpathError(
    "WP_INVALID_INPUT",
    `the times of ${provenance.source} have no grid to jitter inside; leave ${setting} out`,
  );
}

function given(bounds: Readonly<Record<string, number | undefined>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(bounds).filter((entry): entry is [string, number] => entry[1] !== undefined),
  );
}
