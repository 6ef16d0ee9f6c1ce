import { describe, expect, test } from "vitest";
import type { TraceRow } from "../../workload/trace/row.ts";
import { prepareTrace } from "./trace.ts";
import type { TraceConfig } from "./types.ts";

const CONFIG: TraceConfig = { files: ["a.jsonl"], blockTokens: 512, jitter: false };

function prepared(config: Partial<TraceConfig>, timesMs: readonly number[]): number {
  const rows = timesMs.map((timestampMs): TraceRow => {
    return { timestampMs, inputTokens: 700, outputTokens: 50, hashIds: [1, 2] };
  });
  const provenance = { source: "a.jsonl", sha256: "0".repeat(64), sourceRows: rows.length, steps: [] };
  return prepareTrace({ ...CONFIG, ...config }, rows, provenance).rows.length;
}

describe("a trace for an experiment", () => {
  const onGrid = [0, 0, 3_000, 3_000, 6_000, 6_000, 9_000, 9_000];
  const offGrid = [0, 170, 1_300, 2_950, 3_777, 5_120];

  test("is refused if nothing is left of it", () => {
    expect(() => prepared({ filter: { maxInputTokens: 100 } }, onGrid)).toThrow(/leaves no row of a\.jsonl/);
  });

  test("is refused before anything runs if it is to be jittered and has no grid", () => {
    expect(() => prepared({ jitter: true }, offGrid)).toThrow(/a\.jsonl have no grid to jitter inside/);
    expect(prepared({ jitter: true }, onGrid)).toBe(onGrid.length);
    expect(prepared({}, offGrid)).toBe(offGrid.length);
  });
});
