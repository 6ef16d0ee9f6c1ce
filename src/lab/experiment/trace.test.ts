import { describe, expect, test } from "vitest";
import type { TraceRow } from "../../workload/trace/row.ts";
import { checkJitter, prepareTrace } from "./trace.ts";
import type { TraceConfig } from "./types.ts";

const CONFIG: TraceConfig = { files: ["a.jsonl"], blockTokens: 512, jitter: false };

function prepared(
  config: Partial<TraceConfig>,
  timesMs: readonly number[],
  ...arms: readonly (boolean | undefined)[]
): number {
  const rows = timesMs.map((timestampMs): TraceRow => {
    return { timestampMs, inputTokens: 700, outputTokens: 50, hashIds: [1, 2] };
  });
  const provenance = { source: "a.jsonl", sha256: "0".repeat(64), sourceRows: rows.length, steps: [] };
  const trace = prepareTrace({ ...CONFIG, ...config }, rows, provenance);
  checkJitter(
    { ...CONFIG, ...config },
    trace,
    arms.map((jitter) => ({ name: "kv", jitter })),
  );
  return trace.rows.length;
}

describe("a trace for an experiment", () => {
  const onGrid = [0, 0, 3_000, 3_000, 6_000, 6_000, 9_000, 9_000];
  const offGrid = [0, 170, 1_300, 2_950, 3_777, 5_120];

  test("is refused if nothing is left of it", () => {
    expect(() => prepared({ filter: { maxInputTokens: 100 } }, onGrid)).toThrow(/leaves no row of a\.jsonl/);
  });

  test("is refused before anything runs if it is to be jittered and has no grid", () => {
    const refusal = /a\.jsonl have no grid to jitter inside; leave workload\.trace\.jitter out/;
    expect(() => prepared({ jitter: true }, offGrid, undefined)).toThrow(refusal);
    expect(prepared({ jitter: true }, onGrid, undefined)).toBe(onGrid.length);
    expect(prepared({}, offGrid, undefined)).toBe(offGrid.length);
  });

  test("is jittered by what its arms say, whatever it says itself", () => {
    const refusal = /no grid to jitter inside; leave jitter of arm kv out/;
    expect(() => prepared({}, offGrid, false, true)).toThrow(refusal);
    expect(prepared({ jitter: true }, offGrid, false)).toBe(offGrid.length);
  });
});
