import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { requireData } from "../../../test/support/required-component.ts";
import { errorGroups, isGoalRow, summariseErrors } from "./error-summary.ts";
import { type PredictedRow, predictRow, type RowPrediction } from "./prediction.ts";
import { parseSiliconRows, type SiliconRow } from "./silicon-row.ts";
import { isInSubset } from "./silicon-fit.ts";

const ROW: SiliconRow = {
  id: "one",
  dataSource: "source_file=x",
  backend: "trtllm",
  backendVersion: "",
  model: "meta-llama/Llama-3.1-70B",
  system: "h200_sxm",
  precision: "fp8",
  inputTokens: 1024,
  outputTokens: 1024,
  concurrency: 4,
  tensorParallel: 1,
  ttftMs: 500,
  tpotMs: 20,
};

function covered(predictions: readonly RowPrediction[]): PredictedRow[] {
  return predictions.filter((prediction): prediction is PredictedRow => prediction.covered);
}

describe("predictRow", () => {
  it("gives the same answer twice", () => {
    expect(predictRow(ROW)).toEqual(predictRow(ROW));
  });

  it("says why a row is not covered", () => {
    const reasons = [{ precision: "fp4" }, { model: "x/y" }, { system: "l40s" }, { system: "a100_sxm4_80gb" }].map(
      (change) => {
        const prediction = predictRow({ ...ROW, ...change });
        return prediction.covered ? "" : prediction.reason;
      },
    );
    expect(reasons).toEqual([
      "fp4 weights are not modelled",
      "the model x/y is not modelled",
      "the GPU l40s is not modelled",
      "a100-80gb has no FP8 matrix units",
    ]);
  });

  it("covers every BF16 and FP8 combination of the named models and cards", () => {
    for (const backend of ["vllm", "trtllm", "sglang"]) {
      for (const model of ["Llama-3.1-8B", "Llama-3.1-70B", "Qwen3-8B", "Qwen3-32B"]) {
        for (const system of ["h100_sxm", "h200_sxm", "b200_sxm"]) {
          for (const precision of ["bf16", "fp8"]) {
            const prediction = predictRow({
              ...ROW,
              backend,
              model,
              system,
              precision,
              tensorParallel: 4,
              outputTokens: 32,
            });
            expect(prediction.covered && prediction.tpotMs > 0, `${backend} ${model} ${system} ${precision}`).toBe(
              true,
            );
          }
        }
      }
    }
  });

  it("meets the accuracy goals on measured rows, on the half held out too", (test) => {
    const file = requireData(test, "silicon/silicon_rows.csv");
    const predictions = parseSiliconRows(readFileSync(file, "utf8"), file).map((row) => predictRow(row));
    expect(predictions.filter((prediction) => !prediction.covered).every(({ row }) => row.precision === "fp4")).toBe(
      true,
    );
    for (const subset of ["calibration", "held-out", "all"] as const) {
      const goal = covered(predictions).filter((one) => isGoalRow(one) && isInSubset(one.row.id, subset));
      const tpot = summariseErrors(goal.map((one) => one.tpotErrorPct));
      expect(tpot.medianPct).toBeLessThanOrEqual(6);
      expect(tpot.p90Pct).toBeLessThanOrEqual(15);
      const timely = goal.filter((one) => one.documentedClient && !one.ttftSaturated);
      expect(summariseErrors(timely.map((one) => one.ttftErrorPct)).medianPct).toBeLessThanOrEqual(15);
    }
    expect(errorGroups(predictions).every((group) => Number.isFinite(group.tpot.biasPct))).toBe(true);
  });
});

describe("summariseErrors", () => {
  it("takes sizes for median and p90 and signs for the bias", () => {
    expect(summariseErrors([-4, 2, 6, -8])).toEqual({ n: 4, medianPct: 5, p90Pct: 8, biasPct: -1 });
    expect(summariseErrors([]).n).toBe(0);
  });
});
