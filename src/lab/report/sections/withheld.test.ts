import { describe, expect, test } from "vitest";
import { Rng } from "../../../core/rng.ts";
import { comparePaired } from "../../../measure/paired.ts";
import { accountingOf, cellOf, latencyOf, levelOf } from "../cells.test-support.ts";
import type { ArmComparison, LevelComparison } from "../comparisons.ts";
import type { Block, Section } from "../document.ts";
import type { ReportModel } from "../model.ts";
import type { VerdictKind } from "../verdict.ts";
import { pairedSection } from "./paired.ts";
import { summarySection } from "./summary.ts";

/** An arm that is quicker with what it completed, at a level with the given verdict. */
function levelWith(concurrency: number, kind: VerdictKind): LevelComparison {
  const cell = (arm: string, p50: number): ReturnType<typeof cellOf> =>
    cellOf(arm, {
      level: { concurrency, workers: 2 },
      accounting: accountingOf(900),
      latencies: { ttftMs: latencyOf({ p50, p95: 2 * p50 }) },
    });
  const values = { baseline: new Float64Array(100).fill(90), treatment: new Float64Array(100).fill(30), unpaired: 0 };
  const pairs = comparePaired([values], new Rng(1));
  return {
    ...levelOf(cell("rr", 90), cell("kv", 30)),
    paired: { ttft: pairs, e2e: pairs, bands: [], unlike: 0 },
    verdict: { kind, reasons: [] },
  };
}

function modelOf(...levels: readonly LevelComparison[]): ReportModel {
  const comparison: Partial<ArmComparison> = { arm: "kv", baseline: "rr", levels };
  const model: Partial<ReportModel> = {
    baseline: "rr",
    levels: levels.map(({ level }) => level),
    comparisons: [comparison as ArmComparison],
  };
  return model as ReportModel;
}

function rowsOf({ blocks }: Section): readonly (readonly string[])[] {
  const found = blocks.find((block): block is Extract<Block, { kind: "table" }> => block.kind === "table");
  return found?.rows ?? [];
}

const valueOf = (section: Section, metric: string): string | undefined =>
  rowsOf(section).find(([name]) => name.startsWith(metric))?.[1];

describe("what cannot be compared is not praised", () => {
  test("the summary tells gains only of levels that can be compared, and names the others", () => {
    const section = summarySection(
      modelOf(levelWith(4, "traded"), levelWith(8, "better"), levelWith(9, "not-comparable")),
    );
    expect(valueOf(section, "Left out")).toBe("concurrency 4: completeness traded; concurrency 9: not comparable");
    expect(valueOf(section, "Peak TTFT p50 improvement")).toBe("+66.7 % at concurrency 8");
    expect(valueOf(section, "Average TTFT p50 improvement")).toBe("+66.7 %");
  });

  test.each([
    ["traded", "–, completeness traded"],
    ["not-comparable", "–, not comparable"],
    ["better", "+66.7 % at concurrency 8"],
  ] as const)("a summary of one level that is %s says %s", (kind, said) => {
    expect(valueOf(summarySection(modelOf(levelWith(8, kind))), "Peak TTFT p50 improvement")).toBe(said);
  });

  test("pairs make no verdict where the level has none", () => {
    const rows = rowsOf(
      pairedSection(modelOf(levelWith(4, "traded"), levelWith(8, "better"), levelWith(9, "not-comparable"))),
    );
    expect(rows.map((row) => row[13])).toEqual(["completeness traded", "faster", "not comparable"]);
  });
});
