import type { LengthFilter, TraceSlice } from "./transform.ts";

/** One thing that was done to a trace. */
export type TraceStep =
  | ({ readonly step: "filter" } & LengthFilter)
  | ({ readonly step: "slice"; readonly keepTimes: boolean } & TraceSlice)
  | { readonly step: "scale"; readonly speed: number }
  | { readonly step: "jitter"; readonly seed: number }
  | { readonly step: "tile"; readonly copies: number };

/** Where a trace comes from: the file by its sha256, which whoever read it computes, and what was done since, in order. */
export interface TraceProvenance {
  readonly source: string;
  readonly sha256: string;
  readonly sourceRows: number;
  readonly steps: readonly (TraceStep & { readonly rows: number })[];
}

/** The provenance after one more step that left `rows` rows. */
export function withStep(provenance: TraceProvenance, step: TraceStep, rows: number): TraceProvenance {
  return { ...provenance, steps: [...provenance.steps, { ...step, rows }] };
}

/** A provenance in one line for people. */
export function describeProvenance({ source, sha256, sourceRows, steps }: TraceProvenance): string {
  const done = steps.map(({ step, rows, ...details }) => {
    const settings = Object.entries(details).map(([name, value]) => `${name}=${String(value)}`);
    return `${[step, ...settings].join(" ")} (${rows} rows)`;
  });
  return [`${source} sha256:${sha256.slice(0, 12)} (${sourceRows} rows)`, ...done].join(" → ");
}
