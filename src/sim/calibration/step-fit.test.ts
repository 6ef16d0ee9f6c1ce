import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { summariseErrors } from "./error-summary.ts";
import { fitSteps } from "./step-fit.ts";
import { isStepFile, parseStepRows } from "./step-row.ts";

const FILE = new URL("../../../calibration/h200-2026-11-15/measured_rows.csv", import.meta.url);

describe("the step-time formula on our own H200 measurements", () => {
  const text = readFileSync(FILE, "utf8");
  const fit = fitSteps(parseStepRows(text, "measured_rows.csv"), "h200");

  it.each(["decode", "prefill", "mixed"])("fitted on every other %s step, holds on the rest", (kind) => {
    const heldOut = fit.predictions.filter((one) => one.row.kind === kind && !one.fitted);
    const errors = summariseErrors(heldOut.map((one) => one.errorPct));
    expect(errors.n).toBeGreaterThan(20);
    expect(errors.medianPct).toBeLessThanOrEqual(5);
    expect(errors.p90Pct).toBeLessThanOrEqual(10);
    expect(Math.abs(errors.biasPct)).toBeLessThanOrEqual(3);
  });

  it("shows what a step costs without CUDA graphs", () => {
    expect(fit.eager.map((one) => one.model)).toEqual(["llama-3.1-8b", "qwen3-8b"]);
    for (const one of fit.eager) expect(one.layerNs).toBeGreaterThan(100_000);
  });

  it("refuses an unknown card", () => {
    expect(() => fitSteps([], "l40s")).toThrow(/l40s is not modelled/);
  });
});

describe("parseStepRows", () => {
  it("names file, line and problem", () => {
    const header = readFileSync(FILE, "utf8").split("\n")[0].trim();
    expect(isStepFile(`${header}\n`)).toBe(true);
    expect(() => parseStepRows(`${header}\nx`, "steps.csv")).toThrow(
      "steps.csv line 2: has 1 fields, the header has 20",
    );
    expect(() => parseStepRows(header, "steps.csv")).toThrow("steps.csv line 2: there are no rows of whole steps");
  });
});
