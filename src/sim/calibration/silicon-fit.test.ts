import { describe, expect, it } from "vitest";
import { CONSTANTS } from "../timing/constants.ts";
import { type PredictedRow, predictRow } from "./prediction.ts";
import { fitCell, FIT_BOUNDS, isInSubset } from "./silicon-fit.ts";
import type { SiliconRow } from "./silicon-row.ts";

const CELL = CONSTANTS[0];

function row(concurrency: number): SiliconRow {
  return {
    id: `row ${concurrency}`,
    dataSource: "unknown",
    backend: CELL.backend,
    backendVersion: CELL.version,
    model: "Qwen/Qwen3-8B",
    system: "h100_sxm",
    precision: CELL.weights,
    inputTokens: 512,
    outputTokens: 32,
    concurrency,
    tensorParallel: 1,
    ttftMs: 100,
    tpotMs: 1,
  };
}

describe("fitCell", () => {
  it("moves constants towards rows that are slower, and stays inside the bounds", () => {
    const rows = [1, 4].map((concurrency) => {
      const one = row(concurrency);
      return { ...one, tpotMs: (predictRow(one) as PredictedRow).tpotMs * 1.15 };
    });
    const found = fitCell(CELL, rows);
    expect(found?.lossAfter).toBeLessThan((found?.lossBefore ?? 0) / 2);
    for (const { name, low, high } of FIT_BOUNDS) {
      expect(found?.values[name]).toBeGreaterThanOrEqual(Math.min(low, CELL.constants[name]));
      expect(found?.values[name]).toBeLessThanOrEqual(Math.max(high, CELL.constants[name]));
    }
  });

  it("has nothing to say about a cell without rows", () => {
    expect(fitCell(CELL, [])).toBeUndefined();
  });

  it("cuts rows into two halves by id", () => {
    const ids = Array.from({ length: 400 }, (_, i) => `row-${i}`);
    const calibration = ids.filter((id) => isInSubset(id, "calibration"));
    expect(calibration.length).toBeGreaterThan(150);
    expect(calibration.length).toBeLessThan(250);
    expect(ids.every((id) => isInSubset(id, "calibration") !== isInSubset(id, "held-out"))).toBe(true);
  });
});
